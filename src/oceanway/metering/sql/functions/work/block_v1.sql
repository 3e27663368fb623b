-- Purpose: records why an attempt at a work could not go on; the work stays active, its lease is released, and it is tried
--   again by backoff (TX-21, MTR-19, MTR-20, MTR-36). Nothing else is written (MTR-37).
-- Locks: the lane row.
-- Errors: OW001 other evidence under the same identity; OW002 the lease is lost; OW003 a state that is not blocked on it;
--   23514 a cause that the lane does not have.
create or replace function metering.work_block_v1(
    p_fencing_token bigint, p_evidence bytea, p_blocked bytea, p_state bytea, p_base interval, p_longest interval
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_blocked constant jsonb := convert_from(p_blocked, 'UTF8')::jsonb;
    v_cause constant jsonb := convert_from(p_blocked, 'UTF8')::jsonb -> 'blockingCause';
    v_state constant jsonb := convert_from(p_state, 'UTF8')::jsonb;
    v_lane metering.lane;
begin
    v_lane := metering.lane_hold(v_blocked ->> 'meteringInputWorkRef', p_fencing_token);
    if (v_blocked ->> 'fencingToken')::bigint <> p_fencing_token
        or v_state ->> 'state' not in ('blocked_on_owner_conflict', 'blocked_on_processing_conflict')
        or v_state ->> 'meteringInputWorkAttemptBlockedRef'
            is distinct from v_blocked ->> 'meteringInputWorkAttemptBlockedRef'
        or v_state ->> 'meteringInputWorkAttemptBlockedDigest'
            is distinct from v_blocked ->> 'meteringInputWorkAttemptBlockedDigest' then
        raise exception using errcode = 'OW003', message = 'record and lane state do not belong to this lease';
    end if;
    perform metering.work_evidence_insert(p_evidence, v_cause);
    insert into metering.work_blocked (metering_input_work_attempt_blocked_ref, metering_input_work_ref, attempt_number,
        fencing_token, lane_kind, gateway_deployment_id, source_evidence_dimension_key, cause_kind,
        owner_conflict_fact_ref, eligibility_processing_conflict_evidence_ref,
        provider_cost_processing_conflict_evidence_ref, digest, document)
    values (v_blocked ->> 'meteringInputWorkAttemptBlockedRef', v_blocked ->> 'meteringInputWorkRef',
        (v_blocked ->> 'attemptNumber')::integer, p_fencing_token, v_blocked #>> '{lane,kind}',
        coalesce(v_blocked #>> '{lane,gatewayDeploymentId}', ''),
        coalesce(v_blocked #>> '{lane,sourceEvidenceDimensionKey}', ''), v_cause ->> 'kind',
        coalesce(v_cause ->> 'executionEligibilityConflictFactRef', v_cause ->> 'gatewayEvidenceConflictFactRef',
            v_cause ->> 'gatewayBindingConflictFactRef'),
        v_cause ->> 'eligibilityProcessingConflictEvidenceRef', v_cause ->> 'providerCostProcessingConflictEvidenceRef',
        v_blocked ->> 'meteringInputWorkAttemptBlockedDigest', p_blocked);
    update metering.lane as l
    set state = v_state ->> 'state', coordination_state = v_state, lease_owner = null, lease_expires_at = null,
        retry_count = l.retry_count + 1,
        available_at = clock_timestamp() + metering.lane_backoff(l.retry_count, p_base, p_longest)
    where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
        = (v_lane.execution_attempt_id, v_lane.lane_kind, v_lane.gateway_deployment_id,
            v_lane.source_evidence_dimension_key);
end $$;
