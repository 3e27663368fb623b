-- Purpose: a task of the credential's application, read without lock, to know which rows to lock afterwards (section 27).
--   A missing task and a hidden one get one answer (TSK-16).
-- Locks: none
-- Errors: OB008 missing or hidden
create or replace function orbit.task_read(p_credential orbit.credentials, p_task_id text)
returns orbit.tasks
language plpgsql
stable
as $$
declare
    v_task orbit.tasks;
begin
    select * into v_task from orbit.tasks as t where t.task_id = p_task_id;
    if not orbit.task_visible(p_credential, v_task, false) then
        raise exception using errcode = 'OB008', message = format('there is no task %s', left(p_task_id, 64));
    end if;
    return v_task;
end $$;
