-- Purpose: the body of a task (section 14). The exact text of the result comes last and is put in as it is (SRC-19).
-- Locks: none
-- Errors: none
create or replace function orbit.task_body(p_task orbit.tasks)
returns text
language plpgsql
stable
as $$
declare
    v_head text;
begin
    select row_to_json(b)::text into v_head
    from (
        select p_task.task_id, p_task.namespace_id, p_task.application_id, q.name as queue, p_task.queue_id, p_task.state,
            p_task.revision, p_task.effect_policy, p_task.effect_uncertain, p_task.attempt_count, p_task.max_attempts,
            p_task.current_attempt_id, orbit.time_text(p_task.created_at) as created_at,
            orbit.time_text(p_task.updated_at) as updated_at
        from orbit.queues as q where q.queue_id = p_task.queue_id) as b;
    return left(v_head, -1) || ',"result":' || coalesce(p_task.result_json, 'null') || '}';
end $$;
