-- Purpose: what an event that advances its watermark writes besides its receipt: watermark, the next generation of the lane
--   with its work, and the superseded finish of a work that was started (TX-17, MTR-02, MTR-11).
-- Locks: as `input_lock_v1`, which the caller has called in this transaction.
-- Errors: OW001 another work or finish under the same identity; OW002 the lane has moved; OW003 documents that do not belong
--   together; OW009 the finish of a started work is missing.
create or replace function metering.input_advance_v1(
    p_envelope bytea, p_work bytea, p_state bytea, p_superseded bytea, p_expected_revision bigint
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_work constant jsonb := convert_from(p_work, 'UTF8')::jsonb;
    v_state constant jsonb := convert_from(p_state, 'UTF8')::jsonb;
    v_source record;
    v_lane metering.lane;
begin
    select s.* into v_source from metering.input_source(convert_from(p_envelope, 'UTF8')::jsonb) as s;
    if v_work ->> 'executionAttemptId' is distinct from v_source.execution_attempt_id
        or v_work #>> '{lane,kind}' is distinct from v_source.lane_kind
        or coalesce(v_work #>> '{lane,gatewayDeploymentId}', '') <> v_source.lane_deployment_id
        or coalesce(v_work #>> '{lane,sourceEvidenceDimensionKey}', '') <> v_source.lane_dimension_key
        or (v_work ->> 'workGeneration')::bigint <> p_expected_revision + 1 then
        raise exception using errcode = 'OW003', message = 'the work does not belong to the lane of the event';
    end if;
    perform metering.input_observe(p_envelope, v_source.execution_attempt_id);
    perform metering.work_insert(p_work, v_work);
    select l.* into v_lane from metering.lane as l
    where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
        = (v_source.execution_attempt_id, v_source.lane_kind, v_source.lane_deployment_id, v_source.lane_dimension_key)
    for no key update;
    if coalesce(v_lane.fence_revision, 0) <> p_expected_revision then
        raise exception using errcode = 'OW002', message = 'the lane has moved';
    end if;
    if v_lane.active_work_ref is not null and v_lane.attempt_number > 0 then
        perform metering.work_supersede(v_lane, p_superseded);
    elsif p_superseded is not null then
        raise exception using errcode = 'OW003', message = 'a work that is finished or was never started is not superseded';
    end if;
    insert into metering.lane as l (execution_attempt_id, lane_kind, gateway_deployment_id,
        source_evidence_dimension_key, fence_revision, latest_work_generation, trigger_algorithm, trigger_digest, state,
        coordination_state, active_work_ref, available_at, attempt_number, retry_count)
    values (v_source.execution_attempt_id, v_source.lane_kind, v_source.lane_deployment_id, v_source.lane_dimension_key,
        1, 1, v_work ->> 'laneTriggerDigestAlgorithmVersion', v_work ->> 'laneTriggerDigest', 'pending', v_state,
        v_work ->> 'meteringInputWorkRef', clock_timestamp(), 0, 0)
    on conflict (execution_attempt_id, lane_kind, gateway_deployment_id, source_evidence_dimension_key) do update
    set fence_revision = l.fence_revision + 1, latest_work_generation = l.latest_work_generation + 1,
        trigger_algorithm = excluded.trigger_algorithm, trigger_digest = excluded.trigger_digest, state = 'pending',
        coordination_state = excluded.coordination_state, active_work_ref = excluded.active_work_ref,
        available_at = excluded.available_at, lease_owner = null, lease_expires_at = null,
        attempt_number = 0, retry_count = 0;
end $$;
