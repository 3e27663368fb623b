-- Purpose: cancels a task (TX-04, TSK-13): a queued one, or a running one whose work does no harm when it is done in part;
--   any other running one needs review, with an uncertain effect. The attempt is abandoned and its permit removed. The
--   replay is answered before state and revision are looked at (IDM-09).
-- Locks: idempotency identity, queue, task, attempt, permit, stream row last (A-26, A-27)
-- Errors: OB001..OB004, OB008, OB026, OB015, OB012 state, OB014 revision
create or replace function orbit.task_cancel_v1(
    p_token_sha256 bytea, p_task_id text, p_expected_revision bigint, p_reason text, p_idempotency_key text,
    p_request_sha256 text
)
returns table (response_status integer, response_json text, replayed boolean, wake_queue_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'tasks:cancel');
    v_task orbit.tasks := orbit.task_read(v_credential, p_task_id);
    v_stored record;
    v_attempt text;
    v_review boolean;
    v_new record;
    v_body text;
begin
    if p_expected_revision is null or char_length(p_reason) > 1000 then
        raise exception using errcode = 'OB026',
            message = 'expected_revision is required and reason has at most 1000 characters';
    end if;
    perform orbit.task_relax_commit();
    v_stored := orbit.idempotency_begin(v_credential, 'task.cancel', p_task_id, p_idempotency_key, p_request_sha256);
    if v_stored.response_status is not null then
        return query select v_stored.response_status, v_stored.response_json, true, null::text;
        return;
    end if;
    v_task := orbit.task_lock(v_task.queue_id, p_task_id, null);
    perform orbit.task_check_state(v_task, array['queued', 'running'], p_expected_revision);
    if v_task.state = 'running' then
        v_attempt := v_task.current_attempt_id;
        perform orbit.attempt_end(v_attempt, 'ABANDONED');
    end if;
    v_review := v_task.state = 'running' and v_task.effect_policy = 'unsafe';
    v_new := orbit.task_settle(
        p_task_id, case when v_review then 'needs_review' else 'cancelled' end, v_review, null, v_attempt);
    perform orbit.task_audit_result(v_credential.credential_id, 'task.cancelled', v_new.task, v_attempt, v_new.event_id,
        v_new.event_type, v_new.sequence);
    v_body := orbit.task_body(v_new.task);
    perform orbit.idempotency_end(v_stored.identity, 200, v_body);
    return query select 200, v_body, false, v_task.queue_id::text;
end $$;
