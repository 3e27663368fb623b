-- Purpose: moves the deadline of a running attempt to now + lease_seconds (TX-07, TSK-20): no event, no audit, no revision.
--   Whatever ends an attempt holds its row, so its state under the lock is the truth.
-- Locks: attempt row
-- Errors: OB001..OB004, OB009, OB010
create or replace function orbit.attempt_heartbeat_v1(p_token_sha256 bytea, p_attempt_id text, p_secret_sha256 bytea)
returns timestamptz
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_found record := orbit.attempt_read(orbit.access_check(p_token_sha256, 'tasks:work'), p_attempt_id);
    v_attempt orbit.task_attempts;
    v_seconds integer;
    v_deadline timestamptz;
begin
    select * into v_attempt from orbit.task_attempts as a where a.attempt_id = p_attempt_id for update;
    if v_attempt.state <> 'RUNNING' or not orbit.secret_equals(p_secret_sha256, v_attempt.lease_secret_sha256)
        or p_attempt_id is distinct from (
            select t.current_attempt_id from orbit.tasks as t where t.task_id = v_attempt.task_id) then
        raise exception using errcode = 'OB010', message = format('attempt %s has ended or the secret is not its own', p_attempt_id);
    end if;
    select q.lease_seconds into v_seconds from orbit.queues as q where q.queue_id = (v_found.task).queue_id;
    update orbit.task_attempts as a set lease_expires_at = clock_timestamp() + make_interval(secs => v_seconds)
    where a.attempt_id = p_attempt_id
    returning a.lease_expires_at into v_deadline;
    return v_deadline;
end $$;
