-- Purpose: records that the gateway's own claims about a chain exclude each other; until the repair its reads answer
--   `conflicting` (REF-24). The same fact again, while it is open, changes nothing.
-- Locks: the pointer of the chain.
-- Errors: OW001 another conflict of the chain is open, or this one was repaired; OW004 the chain has no statement.
create or replace function gateway.evidence_declare_conflict_v1(p_document bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
begin
    perform from gateway.availability_pointer as p
    where (p.execution_attempt_id, p.gateway_deployment_id, p.provider_evidence_kind, p.evidence_dimension_key)
        = (v_fact ->> 'executionAttemptId', v_fact ->> 'gatewayDeploymentId', v_fact ->> 'providerEvidenceKind',
            v_fact ->> 'evidenceDimensionKey')
    for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'the chain has no statement';
    end if;
    perform gateway.evidence_keep_conflict(p_document);
    insert into gateway.evidence_conflict (gateway_evidence_conflict_fact_ref, execution_attempt_id, gateway_deployment_id,
        provider_evidence_kind, evidence_dimension_key)
    values (v_fact ->> 'gatewayEvidenceConflictFactRef', v_fact ->> 'executionAttemptId',
        v_fact ->> 'gatewayDeploymentId', v_fact ->> 'providerEvidenceKind', v_fact ->> 'evidenceDimensionKey')
    on conflict do nothing;
    if not found and not exists (
        select from gateway.evidence_conflict as c
        where c.gateway_evidence_conflict_fact_ref = v_fact ->> 'gatewayEvidenceConflictFactRef'
          and c.repaired_at is null) then
        raise exception using errcode = 'OW001', message = 'another conflict of the chain is open, or this one was repaired';
    end if;
end $$;
