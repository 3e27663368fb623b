-- Purpose: the one place where a task leaves `queued`, `running` or `needs_review` with an event: task state, state event,
--   then, for a result, stream row, sequence and snapshot (SRC-05, TX-03 to TX-06). The caller holds the locks of
--   `task_lock`, has ended the attempt, and writes receipt, audit and idempotent response afterwards: nothing between
--   the stream row and the commit but inserts that carry the sequence (JRN-17). A requeue is no result: no stream row, no
--   sequence (SRC-02); the task comes back after min(2^(attempt_count-1), 30) seconds (TSK-21).
-- Locks: stream row, for results only
-- Errors: 55000 isolation level, 23514 no stream row or no valid snapshot
create or replace function orbit.task_settle(
    p_task_id text, p_state text, p_effect_uncertain boolean, p_result_json text, p_attempt_id text,
    out task orbit.tasks, out event_id text, out event_type text, out sequence bigint, out settled_at timestamptz
)
language plpgsql
as $$
begin
    settled_at := clock_timestamp();
    update orbit.tasks as t
    set state = p_state, revision = t.revision + 1, effect_uncertain = p_effect_uncertain, result_json = p_result_json,
        current_attempt_id = case when p_state <> 'queued' then t.current_attempt_id end,
        available_at = case when p_state <> 'queued' then t.available_at
            else settled_at + make_interval(secs => least(2 ^ least(t.attempt_count - 1, 5), 30)) end,
        updated_at = settled_at
    where t.task_id = p_task_id
    returning t.* into task;
    event_id := orbit.id_new('evt');
    event_type := case p_state when 'queued' then 'task.requeued' else 'task.' || p_state end;
    insert into orbit.events (event_id, namespace_id, queue_id, task_id, attempt_id, type, task_revision, created_at)
    values (event_id, task.namespace_id, task.queue_id, task.task_id, p_attempt_id, event_type, task.revision, settled_at);
    if p_state <> 'queued' then
        sequence := orbit.journal_append(
            event_id, task.namespace_id, task.queue_id, task.task_id, event_type, orbit.task_snapshot(task));
    end if;
end $$;
