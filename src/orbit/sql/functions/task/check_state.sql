-- Purpose: refuses a change of a locked task that is in another state or has another revision than the caller believes.
-- Locks: none
-- Errors: OB012 state, OB014 revision
create or replace function orbit.task_check_state(p_task orbit.tasks, p_states text[], p_expected_revision bigint)
returns void
language plpgsql
immutable
as $$
begin
    if p_task.state <> all(p_states) then
        raise exception using errcode = 'OB012', message = format('task %s is %s', p_task.task_id, p_task.state);
    end if;
    if p_task.revision <> p_expected_revision then
        raise exception using errcode = 'OB014',
            message = format('task %s has revision %s', p_task.task_id, p_task.revision),
            detail = format('{"current_revision":%s}', p_task.revision);
    end if;
end $$;
