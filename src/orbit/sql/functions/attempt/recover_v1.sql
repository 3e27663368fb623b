-- Purpose: takes a task back from an attempt whose lease has run out (TX-06, TSK-12): the attempt is `EXPIRED`, its permit
--   goes, the task follows the outcome table as after a failure with an unknown effect. An attempt that has ended or was
--   renewed in the meantime is left alone. One transaction per attempt.
-- Locks: queue, task, attempt, permit, stream row last, for results only
-- Errors: none
create or replace function orbit.attempt_recover_v1(p_attempt_id text)
returns table (recovered boolean, event_type text, sequence bigint, wake_queue_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_attempt orbit.task_attempts;
    v_task orbit.tasks;
    v_next record;
    v_new record;
begin
    select t.* into v_task from orbit.task_attempts as a join orbit.tasks as t on t.task_id = a.task_id
    where a.attempt_id = p_attempt_id;
    perform orbit.task_relax_commit();
    v_task := orbit.task_lock(v_task.queue_id, v_task.task_id, p_attempt_id);
    select * into v_attempt from orbit.task_attempts as a where a.attempt_id = p_attempt_id;
    if v_attempt.state is distinct from 'RUNNING' or v_attempt.lease_expires_at >= clock_timestamp()
        or v_task.current_attempt_id is distinct from p_attempt_id then
        return query select false, null::text, null::bigint, null::text;
        return;
    end if;
    v_next := orbit.task_next_state('failed', 'unknown', false, v_task);
    perform orbit.attempt_end(p_attempt_id, 'EXPIRED');
    v_new := orbit.task_settle(v_task.task_id, v_next.state, v_next.effect_uncertain, null, p_attempt_id);
    perform orbit.task_audit_result(
        null, 'task.attempt.recovered', v_new.task, p_attempt_id, v_new.event_id, v_new.event_type, v_new.sequence);
    return query select true, v_new.event_type, v_new.sequence,
        case when v_new.sequence is not null then v_task.queue_id::text end;
end $$;
