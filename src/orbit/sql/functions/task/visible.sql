-- Purpose: whether a credential may see a task (TSK-16): of its application, or with p_whole_namespace of its namespace, in
--   a queue of its scope. What decides it never changes, so no lock is needed. False for no task.
-- Locks: none
-- Errors: none
create or replace function orbit.task_visible(p_credential orbit.credentials, p_task orbit.tasks, p_whole_namespace boolean)
returns boolean
language plpgsql
stable
as $$
begin
    return p_task.namespace_id is not distinct from p_credential.namespace_id
        and (p_whole_namespace or p_task.application_id = p_credential.application_id)
        and orbit.access_queue_in_scope(p_credential, p_task.queue_id);
end $$;
