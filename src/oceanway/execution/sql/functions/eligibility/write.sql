-- Purpose: writes how one attempt ended, for life, and which event announces it; the caller appends the event. The same
--   fact again changes nothing (TX-13).
-- Locks: the attempt, so that starts and a second fact wait.
-- Errors: OW001 the attempt has another fact; OW003 the fact contradicts the manifest or the start of the attempt, or the
--   event is about something else; OW004 no such attempt.
-- Returns: whether it is new.
create or replace function execution.eligibility_write(p_fact bytea, p_event bytea)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_fact, 'UTF8')::jsonb;
    v_attempt constant text := v_fact ->> 'executionAttemptId';
    v_bound constant boolean := v_fact #>> '{disposition,kind}' = 'gateway_bound';
    v_subject constant text[] := array['tenantKind', 'tenantId', 'workspaceId', 'projectId', 'billingAccountId',
        'billingReservationId', 'runId', 'runStepId', 'executionAttemptId', 'attemptExecutionManifestRef',
        'attemptExecutionManifestSchemaVersion', 'attemptExecutionManifestDigestAlgorithmVersion',
        'attemptExecutionManifestDigest'];
    v_manifest jsonb;
begin
    select convert_from(a.document, 'UTF8')::jsonb into v_manifest
    from execution.attempt as a where a.execution_attempt_id = v_attempt for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'there is no such attempt';
    end if;
    if exists (select from unnest(v_subject) as f (field) where v_fact -> f.field is distinct from v_manifest -> f.field)
        or v_bound is distinct from exists (select from execution.attempt_start as s where s.execution_attempt_id = v_attempt)
        or (v_bound and exists (
            select from unnest(array['gatewayDeploymentId', 'attemptRouteBindingRef', 'attemptRouteBindingSchemaVersion',
                'attemptRouteBindingDigestAlgorithmVersion', 'attemptRouteBindingDigest']) as f (field)
            where v_fact -> 'disposition' -> f.field is distinct from v_manifest -> 'gatewayBinding' -> f.field)) then
        raise exception using errcode = 'OW003', message = 'the fact contradicts the manifest or the start of its attempt';
    end if;
    insert into execution.eligibility_fact (execution_eligibility_fact_ref, execution_attempt_id, disposition_kind,
        result_state, failure_reason_code, not_dispatched_reason_code, digest, document, finalized_event_id)
    values (v_fact ->> 'executionEligibilityFactRef', v_attempt, v_fact #>> '{disposition,kind}',
        v_fact #>> '{disposition,result,state}', v_fact #>> '{disposition,result,failureFact,reasonCode}',
        v_fact #>> '{disposition,notDispatchedFact,reasonCode}', v_fact ->> 'executionEligibilityFactDigest', p_fact,
        (convert_from(p_event, 'UTF8')::jsonb ->> 'eventId')::uuid)
    on conflict do nothing;
    if not found then
        perform from execution.eligibility_fact as e
        where e.execution_attempt_id = v_attempt
          and e.execution_eligibility_fact_ref = v_fact ->> 'executionEligibilityFactRef'
          and e.digest = v_fact ->> 'executionEligibilityFactDigest';
        if not found then
            raise exception using errcode = 'OW001', message = 'the attempt has another eligibility fact';
        end if;
        return false;
    end if;
    perform execution.event_bind(p_event, 'execution.attempt-eligibility.finalized@1',
        v_fact ->> 'executionEligibilityFactRef', v_fact, v_subject || array['executionEligibilityFactRef', 'executionEligibilityFactSchemaVersion',
            'executionEligibilityFactDigestAlgorithmVersion', 'executionEligibilityFactDigest']);
    return true;
end $$;
