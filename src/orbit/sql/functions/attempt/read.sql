-- Purpose: an attempt as a worker's credential may see it: any task of the namespace in a queue of its scope (TSK-16).
--   Read without lock, to know which rows to lock; a missing attempt and a hidden one get one answer.
-- Locks: none
-- Errors: OB009 missing or hidden
create or replace function orbit.attempt_read(
    p_credential orbit.credentials, p_attempt_id text, out attempt orbit.task_attempts, out task orbit.tasks
)
language plpgsql
stable
as $$
begin
    select * into attempt from orbit.task_attempts as a where a.attempt_id = p_attempt_id;
    select * into task from orbit.tasks as t where t.task_id = attempt.task_id;
    if not orbit.task_visible(p_credential, task, true) then
        raise exception using errcode = 'OB009', message = format('there is no attempt %s', left(p_attempt_id, 64));
    end if;
end $$;
