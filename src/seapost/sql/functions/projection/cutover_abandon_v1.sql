-- Purpose: gives up a switch that has not switched: everything is as before, with the shadow's claim paused.
-- Locks: the cutover row.
-- Errors: SP032 it has switched, or there is none.
create or replace function seapost.projection_cutover_abandon_v1(p_name text, p_token uuid, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
begin
    perform seapost.projection_check_actor(p_actor);
    if exists (select from seapost.projection_switch as s where s.token = p_token and s.outcome = 'abandoned') then
        return;
    end if;
    v_cutover := seapost.projection_cutover_hold(p_name, p_token, array['draining_shadow', 'catching_up', 'draining_active']);
    update seapost.projection_version as v set claim_token = null
    where v.projection_name = p_name and v.projection_version = v_cutover.to_version;
    perform seapost.projection_cutover_end(v_cutover, 'abandoned', p_actor);
    perform seapost.audit_append(p_actor, 'projection.cutover.abandon', p_name || '@' || v_cutover.to_version, null);
end $$;
