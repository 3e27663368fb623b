-- Purpose: turns the row of a switch into history.
-- Locks: its rows.
-- Errors: none.
create or replace function seapost.projection_cutover_end(p_cutover seapost.projection_cutover, p_outcome text, p_actor text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into seapost.projection_switch (projection_name, token, from_version, to_version, outcome, ended_at, actor, candidate, readiness_proof)
    values (p_cutover.projection_name, p_cutover.token, p_cutover.from_version, p_cutover.to_version, p_outcome, seapost.clock_now(),
        p_actor, p_cutover.candidate, p_cutover.readiness_proof);
    delete from seapost.projection_candidate_rest as r where r.projection_name = p_cutover.projection_name;
    delete from seapost.projection_cutover as c where c.projection_name = p_cutover.projection_name;
end $$;
