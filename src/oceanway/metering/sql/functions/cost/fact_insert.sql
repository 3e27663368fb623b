-- Purpose: writes the cost of one piece of evidence, or finds the same fact from an earlier generation.
-- Locks: none beyond the row.
-- Errors: OW001 other content for this evidence, with the stage as detail; OW003 another fact than the processing names.
create or replace function metering.cost_fact_insert(p_processing jsonb, p_fact bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_fact, 'UTF8')::jsonb;
begin
    if v_fact ->> 'providerCostFactDigest' is distinct from p_processing #>> '{outcome,providerCostFactDigest}'
        or v_fact ->> 'executionAttemptId' is distinct from p_processing ->> 'executionAttemptId'
        or v_fact ->> 'gatewayDeploymentId' is distinct from p_processing ->> 'gatewayDeploymentId'
        or v_fact ->> 'sourceEvidenceDimensionKey' is distinct from p_processing ->> 'sourceEvidenceDimensionKey' then
        raise exception using errcode = 'OW003', message = 'the processing names another fact';
    end if;
    insert into metering.provider_cost_fact (provider_cost_fact_ref, first_processing_ref, first_processing_outcome,
        execution_attempt_id, gateway_deployment_id, source_evidence_dimension_key, amount, currency,
        gateway_evidence_ref, digest, document)
    values (v_fact ->> 'providerCostFactRef', p_processing ->> 'providerCostAvailabilityProcessingRef',
        p_processing #>> '{outcome,state}', v_fact ->> 'executionAttemptId', v_fact ->> 'gatewayDeploymentId',
        v_fact ->> 'sourceEvidenceDimensionKey', (v_fact ->> 'amount')::numeric, v_fact ->> 'currency',
        v_fact ->> 'gatewayEvidenceRef', v_fact ->> 'providerCostFactDigest', p_fact)
    on conflict do nothing;
    if not found and not exists (
        select from metering.provider_cost_fact as f
        where f.provider_cost_fact_ref = v_fact ->> 'providerCostFactRef'
          and f.digest = v_fact ->> 'providerCostFactDigest') then
        raise exception using errcode = 'OW001', message = 'another cost fact of this evidence is there',
            detail = 'provider_cost_repository';
    end if;
end $$;
