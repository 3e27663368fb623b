-- Purpose: locks what a change of a task needs, in the order of LCK-01, and returns the task as it is then: a statement
--   per lock, because what a later statement reads is newer than the lock before it (LCK-14). The permit follows when
--   the attempt ends, the stream row last of all (JRN-17).
-- Locks: queue row, task row, attempt row where one is named
-- Errors: none
create or replace function orbit.task_lock(p_queue_id text, p_task_id text, p_attempt_id text)
returns orbit.tasks
language plpgsql
as $$
declare
    v_task orbit.tasks;
begin
    perform 1 from orbit.queues as q where q.queue_id = p_queue_id for update;
    select * into v_task from orbit.tasks as t where t.task_id = p_task_id for update;
    -- a cancel learns of the attempt only now; no attempt begins or ends without the locks it has by then
    perform 1 from orbit.task_attempts as a
    where a.attempt_id = coalesce(p_attempt_id, case when v_task.state = 'running' then v_task.current_attempt_id end)
    for update;
    return v_task;
end $$;
