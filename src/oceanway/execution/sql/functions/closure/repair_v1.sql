-- Purpose: ends the open conflict about the closure of a run: its reads answer with the fact again. True if there was one.
-- Locks: the conflict row.
-- Errors: none.
create or replace function execution.closure_repair_v1(p_subject text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update execution.finalization_conflict as c set repaired_at = clock_timestamp()
    where c.run_id = p_subject and c.repaired_at is null;
    return found;
end $$;
