-- Purpose: the audit row of whatever `task_settle` did (AUD-07), without the result (AUD-03).
-- Locks: none
-- Errors: none
create or replace function orbit.task_audit_result(
    p_credential_id text, p_action text, p_task orbit.tasks, p_attempt_id text, p_event_id text, p_event_type text,
    p_sequence bigint
)
returns void
language plpgsql
as $$
begin
    perform orbit.audit_write(p_task.namespace_id, p_credential_id, p_action, 'task', p_task.task_id,
        (select row_to_json(d) from (select p_task.task_id, p_attempt_id, p_event_id, p_event_type, p_task.revision, p_sequence)
            as d (task_id, attempt_id, event_id, event_type, task_revision, sequence)));
end $$;
