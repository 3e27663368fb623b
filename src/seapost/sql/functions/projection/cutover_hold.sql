-- Purpose: takes the durable lock of a switch for one of its steps.
-- Locks: the cutover row, to the end of the transaction.
-- Errors: SP032 there is no switch with this token, or the step cannot follow its phase.
create or replace function seapost.projection_cutover_hold(p_name text, p_token uuid, p_phases text[])
returns seapost.projection_cutover
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
begin
    select c.* into v_cutover from seapost.projection_cutover as c
    where c.projection_name = p_name and c.token = p_token for update;
    if not found then
        raise exception using errcode = 'SP032', message = 'there is no such switch of the projection';
    end if;
    if v_cutover.phase <> all (p_phases) then
        raise exception using errcode = 'SP032', message = 'this step cannot follow the phase of the switch',
            detail = format('phase %s', v_cutover.phase);
    end if;
    return v_cutover;
end $$;
