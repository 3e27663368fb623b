-- Purpose: keeps what a provider reported on a chain, once; the same evidence may be stated again later (REF-22).
-- Locks: the primary key.
-- Errors: OW001 the evidence is known with other content, or belongs to another chain; OW003 it is of another kind or
--   dimension than its chain.
create or replace function gateway.evidence_keep(p_snapshot jsonb, p_document bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_evidence constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
begin
    if (v_evidence ->> 'kind', v_evidence ->> 'dimension')
        is distinct from (p_snapshot ->> 'providerEvidenceKind', p_snapshot ->> 'evidenceDimensionKey') then
        raise exception using errcode = 'OW003', message = 'the evidence is of another kind or dimension';
    end if;
    insert into gateway.evidence (gateway_evidence_ref, execution_attempt_id, gateway_deployment_id,
        provider_evidence_kind, evidence_dimension_key, value, digest, document)
    values (v_evidence ->> 'gatewayEvidenceRef', p_snapshot ->> 'executionAttemptId',
        p_snapshot ->> 'gatewayDeploymentId', v_evidence ->> 'kind', v_evidence ->> 'dimension',
        (v_evidence ->> 'value')::numeric, v_evidence ->> 'gatewayEvidenceDigest', p_document)
    on conflict do nothing;
    if not found and not exists (
        select from gateway.evidence as e
        where e.gateway_evidence_ref = v_evidence ->> 'gatewayEvidenceRef'
          and e.digest = v_evidence ->> 'gatewayEvidenceDigest'
          and (e.execution_attempt_id, e.gateway_deployment_id)
            = (p_snapshot ->> 'executionAttemptId', p_snapshot ->> 'gatewayDeploymentId')) then
        raise exception using errcode = 'OW001', message = 'the evidence is known with other content';
    end if;
end $$;
