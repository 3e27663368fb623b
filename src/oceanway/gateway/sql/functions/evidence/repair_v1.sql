-- Purpose: ends the open conflict about a chain: its reads answer with the statement again. True if there was one.
-- Locks: the conflict row.
-- Errors: none.
create or replace function gateway.evidence_repair_v1(p_attempt text, p_deployment text, p_kind text, p_dimension text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update gateway.evidence_conflict as c set repaired_at = clock_timestamp()
    where (c.execution_attempt_id, c.gateway_deployment_id, c.provider_evidence_kind, c.evidence_dimension_key)
        = (p_attempt, p_deployment, p_kind, p_dimension) and c.repaired_at is null;
    return found;
end $$;
