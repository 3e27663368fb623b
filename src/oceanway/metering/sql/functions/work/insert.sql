-- Purpose: creates a work or finds the same one (MTR-02, AMB-46).
-- Locks: none beyond the row.
-- Errors: OW001 other content under this lane and generation.
create or replace function metering.work_insert(p_document bytea, p_work jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into metering.work (metering_input_work_ref, metering_input_work_operation_id, execution_attempt_id, lane_kind,
        gateway_deployment_id, source_evidence_dimension_key, work_generation, trigger_digest, digest, document)
    values (p_work ->> 'meteringInputWorkRef', p_work ->> 'meteringInputWorkOperationId', p_work ->> 'executionAttemptId',
        p_work #>> '{lane,kind}', coalesce(p_work #>> '{lane,gatewayDeploymentId}', ''),
        coalesce(p_work #>> '{lane,sourceEvidenceDimensionKey}', ''), (p_work ->> 'workGeneration')::bigint,
        p_work ->> 'laneTriggerDigest', p_work ->> 'meteringInputWorkDigest', p_document)
    on conflict do nothing;
    if not found and not exists (select from metering.work as w
        where w.metering_input_work_ref = p_work ->> 'meteringInputWorkRef'
          and w.digest = p_work ->> 'meteringInputWorkDigest') then
        raise exception using errcode = 'OW001', message = 'another work has this lane and generation';
    end if;
end $$;
