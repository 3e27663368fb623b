-- Purpose: refuses a submission beyond the application's limit of open tasks (TSK-07). Only an application with a limit
--   has its quota row locked (A-32); the tasks are counted by a later statement, up to the limit, never kept as a number.
-- Locks: quota row, only where a limit is set
-- Errors: OB013 the limit is reached
create or replace function orbit.task_check_quota(p_application_id text)
returns void
language plpgsql
as $$
declare
    v_limit integer;
begin
    select q.max_open_tasks into v_limit from orbit.application_quotas as q where q.application_id = p_application_id;
    if v_limit is null then
        return;
    end if;
    select q.max_open_tasks into v_limit from orbit.application_quotas as q
    where q.application_id = p_application_id for update;
    if (select count(*) from (
            select from orbit.tasks as t
            where t.application_id = p_application_id and t.state in ('queued', 'running')
            limit v_limit) as o) >= v_limit then
        raise exception using errcode = 'OB013', message = format('the application has %s open tasks, its limit', v_limit);
    end if;
end $$;
