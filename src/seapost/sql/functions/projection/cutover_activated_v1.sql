-- Purpose: notes that another producer's database has activated the delivery set of the switch (AMB-03).
-- Locks: the cutover row.
-- Errors: SP013 the switch does not wait for this producer; SP032 wrong phase.
create or replace function seapost.projection_cutover_activated_v1(p_name text, p_token uuid, p_producer text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
begin
    v_cutover := seapost.projection_cutover_hold(p_name, p_token, array['switched']);
    if p_producer is null or p_producer <> all (v_cutover.producers) then
        raise exception using errcode = 'SP013', message = 'p_producer is none that the switch waits for';
    end if;
    update seapost.projection_cutover as c set activated = array_append(c.activated, p_producer collate "C")
    where c.projection_name = p_name and p_producer <> all (c.activated);
end $$;
