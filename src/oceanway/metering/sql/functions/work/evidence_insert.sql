-- Purpose: keeps the evidence that a blocking cause names, in the table of its lane; the same conflict found again has the
--   same evidence (MTR-16, MTR-17).
-- Locks: none beyond the row.
-- Errors: OW001 other evidence under this identity; OW003 a cause without its evidence, or evidence without its cause.
create or replace function metering.work_evidence_insert(p_evidence bytea, p_cause jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_evidence constant jsonb := convert_from(p_evidence, 'UTF8')::jsonb;
    v_cause constant jsonb := v_evidence -> 'cause';
    v_ref constant text := coalesce(p_cause ->> 'eligibilityProcessingConflictEvidenceRef',
        p_cause ->> 'providerCostProcessingConflictEvidenceRef');
    v_digest constant text := coalesce(p_cause ->> 'eligibilityProcessingConflictEvidenceDigest',
        p_cause ->> 'providerCostProcessingConflictEvidenceDigest');
begin
    if v_ref is distinct from coalesce(v_evidence ->> 'eligibilityProcessingConflictEvidenceRef',
            v_evidence ->> 'providerCostProcessingConflictEvidenceRef')
        or v_digest is distinct from coalesce(v_evidence ->> 'eligibilityProcessingConflictEvidenceDigest',
            v_evidence ->> 'providerCostProcessingConflictEvidenceDigest') then
        raise exception using errcode = 'OW003', message = 'the cause names other evidence';
    end if;
    if v_ref is null then
        return;
    end if;
    if p_cause ->> 'kind' = 'eligibility_processing_conflict' then
        insert into metering.eligibility_conflict_evidence (eligibility_processing_conflict_evidence_ref,
            metering_input_work_ref, validation_stage, conflicting_candidate_digest, digest, document)
        values (v_ref, v_evidence ->> 'meteringInputWorkRef', v_evidence ->> 'validationStage',
            v_evidence ->> 'conflictingCandidateDigest', v_digest, p_evidence)
        on conflict do nothing;
    else
        insert into metering.cost_conflict_evidence (provider_cost_processing_conflict_evidence_ref,
            metering_input_work_ref, lane_kind, gateway_deployment_id, source_evidence_dimension_key, cause_kind,
            owner_conflict_fact_ref, validation_stage, conflicting_candidate_digest_algorithm_version,
            conflicting_candidate_digest, digest, document)
        values (v_ref, v_evidence ->> 'meteringInputWorkRef', 'provider_cost', v_evidence ->> 'gatewayDeploymentId',
            v_evidence ->> 'sourceEvidenceDimensionKey', v_cause ->> 'kind',
            coalesce(v_cause ->> 'gatewayEvidenceConflictFactRef', v_cause ->> 'gatewayBindingConflictFactRef'),
            v_cause ->> 'validationStage', v_cause ->> 'conflictingCandidateDigestAlgorithmVersion',
            v_cause ->> 'conflictingCandidateDigest', v_digest, p_evidence)
        on conflict do nothing;
    end if;
    if not found and not exists (
        select from metering.eligibility_conflict_evidence as e
        where e.eligibility_processing_conflict_evidence_ref = v_ref and e.digest = v_digest
        union all
        select from metering.cost_conflict_evidence as e
        where e.provider_cost_processing_conflict_evidence_ref = v_ref and e.digest = v_digest) then
        raise exception using errcode = 'OW001', message = 'other evidence has this identity';
    end if;
end $$;
