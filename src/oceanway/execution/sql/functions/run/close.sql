-- Purpose: closes one run: the compare-and-set from open to closed, the attempt set, the closure fact, and which event
--   announces it; the caller appends the event (TX-14, APP-19 to APP-22).
-- Locks: the run, against registrations of attempts.
-- Errors: OW002 the stored attempts are others; OW003 documents that do not belong together; OW004 no such run; OW005 it is
--   closed.
create or replace function execution.run_close(p_set bytea, p_fact bytea, p_event bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_set constant jsonb := convert_from(p_set, 'UTF8')::jsonb;
    v_fact constant jsonb := convert_from(p_fact, 'UTF8')::jsonb;
    v_run_id constant text := v_fact ->> 'runId';
    v_admission bytea;
begin
    update execution.run_execution as r set attempt_set_state = 'closed', closed_at = clock_timestamp()
    where r.run_id = v_run_id and r.attempt_set_state = 'open'
    returning r.admission_document into v_admission;
    if not found then
        perform from execution.run_execution as r where r.run_id = v_run_id;
        raise exception using errcode = case when found then 'OW005' else 'OW004' end,
            message = case when found then 'the run is closed' else 'there is no such run' end;
    end if;
    perform execution.run_check_closure(v_set, v_fact, convert_from(v_admission, 'UTF8')::jsonb);
    insert into execution.attempt_set_manifest (run_id, attempt_set_manifest_ref, attempt_count, digest, document)
    values (v_run_id, v_set ->> 'attemptSetManifestRef', (v_set ->> 'attemptCount')::bigint,
        v_set ->> 'attemptSetManifestDigest', p_set);
    insert into execution.run_finalization (run_id, run_execution_finalization_ref,
        run_execution_finalization_state_version, closure_operation_id, digest, document, closed_event_id)
    values (v_run_id, v_fact ->> 'runExecutionFinalizationRef',
        (v_fact ->> 'runExecutionFinalizationStateVersion')::bigint, v_fact ->> 'closureOperationId',
        v_fact ->> 'runExecutionFinalizationDigest', p_fact,
        (convert_from(p_event, 'UTF8')::jsonb ->> 'eventId')::uuid);
    perform execution.event_bind(p_event, 'execution.run-finalization.closed@1',
        v_fact ->> 'runExecutionFinalizationRef', v_fact,
        array['tenantKind', 'tenantId', 'workspaceId', 'projectId', 'billingAccountId', 'billingReservationId', 'runId',
            'runAdmissionManifestRef', 'runAdmissionManifestSchemaVersion', 'runAdmissionManifestDigestAlgorithmVersion',
            'runAdmissionManifestDigest', 'runExecutionFinalizationRef', 'runExecutionFinalizationSchemaVersion',
            'runExecutionFinalizationDigestAlgorithmVersion', 'runExecutionFinalizationDigest',
            'runExecutionFinalizationStateVersion', 'closureOperationId', 'attemptSetManifestRef',
            'attemptSetManifestSchemaVersion', 'attemptSetManifestDigestAlgorithmVersion', 'attemptSetManifestDigest',
            'attemptCount']);
end $$;
