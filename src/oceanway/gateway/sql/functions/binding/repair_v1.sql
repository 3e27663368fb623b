-- Purpose: ends the open conflict about the route of an attempt: its reads answer with the route again. True if there was
--   one.
-- Locks: the conflict row.
-- Errors: none.
create or replace function gateway.binding_repair_v1(p_attempt text, p_deployment text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update gateway.binding_conflict as c set repaired_at = clock_timestamp()
    where (c.execution_attempt_id, c.gateway_deployment_id) = (p_attempt, p_deployment) and c.repaired_at is null;
    return found;
end $$;
