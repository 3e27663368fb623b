-- Purpose: writes the execution receipt of an attempt and returns its body; `sequence` is null after a requeue (TSK-15).
-- Locks: none
-- Errors: none
create or replace function orbit.attempt_write_receipt(
    p_task orbit.tasks, p_attempt_id text, p_event_id text, p_event_type text, p_sequence bigint, p_request_sha256 text,
    p_confirmed_at timestamptz
)
returns text
language plpgsql
as $$
declare
    v_receipt_id text := orbit.id_new('rcpt');
    v_body text;
begin
    select row_to_json(b)::text into v_body
    from (select v_receipt_id, p_task.task_id, p_attempt_id, p_task.state, p_task.revision, p_event_id, p_event_type,
            p_sequence, orbit.time_text(p_confirmed_at))
        as b (receipt_id, task_id, attempt_id, task_state, task_revision, event_id, event_type, sequence, confirmed_at);
    insert into orbit.execution_receipts (
        receipt_id, namespace_id, task_id, attempt_id, event_id, request_sha256, response_json, created_at)
    values (v_receipt_id, p_task.namespace_id, p_task.task_id, p_attempt_id, p_event_id, p_request_sha256, v_body,
        p_confirmed_at);
    return v_body;
end $$;
