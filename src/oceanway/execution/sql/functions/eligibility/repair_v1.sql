-- Purpose: ends the open conflict about how an attempt ended: its reads answer with the fact again. True if there was one.
-- Locks: the conflict row.
-- Errors: none.
create or replace function execution.eligibility_repair_v1(p_subject text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update execution.eligibility_conflict as c set repaired_at = clock_timestamp()
    where c.execution_attempt_id = p_subject and c.repaired_at is null;
    return found;
end $$;
