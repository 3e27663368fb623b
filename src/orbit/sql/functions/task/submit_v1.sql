-- Purpose: takes a task in (TX-01): task, `task.created`, audit, idempotent response. The queue is read without lock.
-- Locks: idempotency identity, quota row where a limit is set (A-26, A-32)
-- Errors: OB001..OB004, OB026 a bound, 22P02 input, OB015 key of another request, OB005/OB006 queue, OB007 queue disabled,
--   OB013 quota
create or replace function orbit.task_submit_v1(
    p_token_sha256 bytea, p_queue text, p_input_json text, p_effect_policy text, p_max_attempts integer,
    p_idempotency_key text, p_request_sha256 text
)
returns table (response_status integer, response_json text, replayed boolean, wake_queue_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'tasks:create');
    v_policy text := coalesce(p_effect_policy, 'unsafe');
    v_attempts integer := coalesce(p_max_attempts, 3);
    v_stored record;
    v_queue orbit.queues;
    v_task orbit.tasks;
    v_moment timestamptz;
    v_body text;
begin
    if p_queue is null or v_policy not in ('safe', 'unsafe') or v_attempts not between 1 and 100 then
        raise exception using errcode = 'OB026', message = 'queue, effect_policy or max_attempts is out of range';
    end if;
    perform orbit.task_check_json('input', p_input_json);
    v_stored := orbit.idempotency_begin(v_credential, 'task.submit', 'tasks', p_idempotency_key, p_request_sha256);
    v_queue := orbit.access_queue_named(v_credential, p_queue);
    if v_stored.response_status is not null then
        return query select v_stored.response_status, v_stored.response_json, true, null::text;
        return;
    end if;
    if not v_queue.enabled then
        raise exception using errcode = 'OB007', message = format('queue %s is disabled', p_queue);
    end if;
    perform orbit.task_check_quota(v_credential.application_id);

    v_moment := clock_timestamp();
    insert into orbit.tasks (
        task_id, namespace_id, application_id, queue_id, state, effect_policy, input_json, max_attempts, available_at,
        created_by, created_at, updated_at)
    values (orbit.id_new('task'), v_credential.namespace_id, v_credential.application_id, v_queue.queue_id, 'queued',
        v_policy, p_input_json, v_attempts, v_moment, v_credential.credential_id, v_moment, v_moment)
    returning * into v_task;
    insert into orbit.events (event_id, namespace_id, queue_id, task_id, type, task_revision, created_at)
    values (orbit.id_new('evt'), v_task.namespace_id, v_task.queue_id, v_task.task_id, 'task.created', 1, v_moment);
    perform orbit.audit_write(v_task.namespace_id, v_credential.credential_id, 'task.submitted', 'task', v_task.task_id,
        (select row_to_json(d) from (select v_task.task_id, null::text, v_task.queue_id) as d (task_id, attempt_id, queue_id)));
    v_body := orbit.task_body(v_task);
    perform orbit.idempotency_end(v_stored.identity, 201, v_body);
    return query select 201, v_body, false, null::text;
end $$;
