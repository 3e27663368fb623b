-- Purpose: the immutable snapshot of a task after a result (SRC-12, SRC-17), in the layout of SRC-18: put together, not
--   built by a JSON function, so that the result keeps the exact text of its producer.
-- Locks: none
-- Errors: none
create or replace function orbit.task_snapshot(p_task orbit.tasks)
returns text
language plpgsql
immutable
as $$
begin
    return '{"schema_version":1,"task_id":"' || p_task.task_id || '","queue_id":"' || p_task.queue_id
        || '","state":"' || p_task.state || '","revision":' || p_task.revision
        || ',"effect_uncertain":' || p_task.effect_uncertain
        || ',"current_attempt_id":' || coalesce('"' || p_task.current_attempt_id || '"', 'null')
        || ',"result":' || coalesce(p_task.result_json, 'null') || '}';
end $$;
