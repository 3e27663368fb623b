-- Purpose: the body of a task that the credential may see (TX-15, TSK-16).
-- Locks: none
-- Errors: OB001..OB004, OB008
create or replace function orbit.task_get_v1(p_token_sha256 bytea, p_task_id text)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    return orbit.task_body(orbit.task_read(orbit.access_check(p_token_sha256, 'tasks:read'), p_task_id));
end $$;
