-- Purpose: keeps the fact that two reports on a chain exclude each other, once (REF-24).
-- Locks: the primary key.
-- Errors: OW001 the fact is known with other content.
create or replace function gateway.evidence_keep_conflict(p_document bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
begin
    insert into gateway.evidence_conflict_fact (gateway_evidence_conflict_fact_ref, execution_attempt_id,
        gateway_deployment_id, provider_evidence_kind, evidence_dimension_key, digest, document)
    values (v_fact ->> 'gatewayEvidenceConflictFactRef', v_fact ->> 'executionAttemptId',
        v_fact ->> 'gatewayDeploymentId', v_fact ->> 'providerEvidenceKind', v_fact ->> 'evidenceDimensionKey',
        v_fact ->> 'gatewayEvidenceConflictFactDigest', p_document)
    on conflict do nothing;
    if not found and not exists (
        select from gateway.evidence_conflict_fact as c
        where c.gateway_evidence_conflict_fact_ref = v_fact ->> 'gatewayEvidenceConflictFactRef'
          and c.digest = v_fact ->> 'gatewayEvidenceConflictFactDigest') then
        raise exception using errcode = 'OW001', message = 'the conflict fact is known with other content';
    end if;
end $$;
