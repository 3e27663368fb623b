-- Purpose: takes the fence of an event's attempt, made at the first event, and returns what is known of the event's lane:
--   its watermarks, its row, and the active work. The caller decides and writes with `input_advance_v1` (TX-17).
-- Locks: the fence row, then the lane row; both until the end of the caller's transaction. The fence is locked so that
--   rows may refer to it meanwhile.
-- Errors: OW001 another manifest than the attempt's first event named; OW003 an event without a source.
create or replace function metering.input_lock_v1(p_envelope bytea, p_manifest bytea)
returns table (watermarks jsonb, lane jsonb, active_work bytea)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_envelope constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_manifest constant jsonb := convert_from(p_manifest, 'UTF8')::jsonb;
    v_source record;
    v_fence metering.attempt_input_fence;
    v_lane metering.lane;
begin
    select s.* into v_source from metering.input_source(v_envelope) as s;
    if v_source.execution_attempt_id is null
        or v_manifest ->> 'executionAttemptId' is distinct from v_source.execution_attempt_id then
        raise exception using errcode = 'OW003', message = 'the event has no source, or the manifest another attempt';
    end if;
    select f.* into v_fence from metering.attempt_input_fence as f
    where f.execution_attempt_id = v_source.execution_attempt_id for no key update;
    if not found then
        insert into metering.attempt_input_fence (execution_attempt_id, attempt_execution_manifest_ref,
            attempt_execution_manifest_digest, manifest)
        values (v_source.execution_attempt_id, v_manifest ->> 'attemptExecutionManifestRef',
            v_manifest ->> 'attemptExecutionManifestDigest', p_manifest)
        on conflict do nothing;
        select f.* into v_fence from metering.attempt_input_fence as f
        where f.execution_attempt_id = v_source.execution_attempt_id for no key update;
    end if;
    if (v_fence.attempt_execution_manifest_ref, v_fence.attempt_execution_manifest_digest) is distinct from (
        v_envelope #>> '{payload,attemptExecutionManifestRef}', v_envelope #>> '{payload,attemptExecutionManifestDigest}')
        or v_fence.manifest <> p_manifest then
        raise exception using errcode = 'OW001', message = 'the attempt is known with another manifest';
    end if;
    select l.* into v_lane from metering.lane as l
    where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
        = (v_source.execution_attempt_id, v_source.lane_kind, v_source.lane_deployment_id, v_source.lane_dimension_key)
    for no key update;
    return query
    select metering.lane_watermarks(v_source.execution_attempt_id, v_source.lane_kind, v_source.lane_deployment_id,
            v_source.lane_dimension_key),
        case when v_lane.execution_attempt_id is not null then jsonb_build_object(
            'fence_revision', v_lane.fence_revision, 'latest_work_generation', v_lane.latest_work_generation,
            'trigger_algorithm', v_lane.trigger_algorithm, 'trigger_digest', v_lane.trigger_digest,
            'coordination_state', v_lane.coordination_state, 'attempt_number', v_lane.attempt_number,
            'fencing_token', v_lane.fencing_token) end,
        (select w.document from metering.work as w where w.metering_input_work_ref = v_lane.active_work_ref);
end $$;
