-- Purpose: returns when everything committed before it is on disk (decision 0016): a transaction that writes one word into
--   the log and commits synchronously, whatever the session's own setting. The log is written in order, so its flush is
--   that of every commit before it.
-- Locks: none
-- Errors: none
create or replace function orbit.journal_fence_v1()
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform set_config('synchronous_commit', 'on', true);
    perform pg_logical_emit_message(true, 'orbit', '');
end $$;
