-- Purpose: gives a task that needs review its authoritative result (TX-05, TSK-14): a new event with a new sequence and
--   snapshot, beside the earlier ones, which stay (SRC-04). A result that is given replaces the earlier one, an explicit
--   JSON null included; without one the earlier stays (TSK-18). The replay is answered before state and revision.
-- Locks: idempotency identity, queue, task, stream row last
-- Errors: OB001..OB004, OB008, OB026, 22P02 result, OB015, OB012 state, OB014 revision
create or replace function orbit.task_resolve_v1(
    p_token_sha256 bytea, p_task_id text, p_expected_revision bigint, p_outcome text, p_result_json text,
    p_result_given boolean, p_reason text, p_idempotency_key text, p_request_sha256 text
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
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'tasks:resolve');
    v_task orbit.tasks := orbit.task_read(v_credential, p_task_id);
    v_result text := coalesce(p_result_json, 'null');
    v_stored record;
    v_new record;
    v_body text;
begin
    if p_expected_revision is null or p_outcome is null or p_outcome not in ('succeeded', 'failed', 'cancelled')
        or p_result_given is null or p_reason is null or p_reason !~ '\S' or char_length(p_reason) > 1000 then
        raise exception using errcode = 'OB026',
            message = 'expected_revision, outcome and a reason of 1 to 1000 characters are required';
    end if;
    perform orbit.task_check_json('result', v_result);
    perform orbit.task_relax_commit();
    v_stored := orbit.idempotency_begin(v_credential, 'task.resolve', p_task_id, p_idempotency_key, p_request_sha256);
    if v_stored.response_status is not null then
        return query select v_stored.response_status, v_stored.response_json, true, null::text;
        return;
    end if;
    v_task := orbit.task_lock(v_task.queue_id, p_task_id, null);
    perform orbit.task_check_state(v_task, array['needs_review'], p_expected_revision);
    v_new := orbit.task_settle(p_task_id, p_outcome, false, case when p_result_given then v_result else v_task.result_json end,
        v_task.current_attempt_id);
    perform orbit.task_audit_result(v_credential.credential_id, 'task.resolved', v_new.task, v_task.current_attempt_id,
        v_new.event_id, v_new.event_type, v_new.sequence);
    v_body := orbit.task_body(v_new.task);
    perform orbit.idempotency_end(v_stored.identity, 200, v_body);
    return query select 200, v_body, false, v_task.queue_id::text;
end $$;
