-- Purpose: ends a switch once every producer has activated its delivery set: its row becomes history (AMB-03).
-- Locks: the cutover row.
-- Errors: SP032 wrong phase, or a producer is awaited.
create or replace function seapost.projection_cutover_finish_v1(p_name text, p_token uuid, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
begin
    perform seapost.projection_check_actor(p_actor);
    if exists (select from seapost.projection_switch as s where s.token = p_token and s.outcome = 'switched') then
        return;
    end if;
    v_cutover := seapost.projection_cutover_hold(p_name, p_token, array['switched']);
    if not v_cutover.activated @> v_cutover.producers then
        raise exception using errcode = 'SP032', message = 'the delivery set is not active in every producer''s database yet',
            detail = format('activated: %s of %s', cardinality(v_cutover.activated), cardinality(v_cutover.producers));
    end if;
    perform seapost.projection_cutover_end(v_cutover, 'switched', p_actor);
end $$;
