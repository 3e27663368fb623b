-- Purpose: ends a running attempt and gives its permit back (TSK-08). The caller holds queue, task and attempt.
-- Locks: permit row
-- Errors: none
create or replace function orbit.attempt_end(p_attempt_id text, p_state text)
returns void
language plpgsql
as $$
begin
    update orbit.task_attempts as a set state = p_state, finished_at = clock_timestamp() where a.attempt_id = p_attempt_id;
    delete from orbit.permits as p where p.attempt_id = p_attempt_id;
end $$;
