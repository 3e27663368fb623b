-- Purpose: the result of an attempt (TX-03, and TX-03b for a safe retry): attempt, permit, task state, state event, then
--   sequence, snapshot, receipt and audit, together or not at all (SRC-05, SRC-06). The repetition of a confirmation gets
--   the original receipt and writes nothing (SRC-08, TSK-11). A lease that has run out and was not recovered still
--   counts (TSK-10).
-- Locks: queue, task, attempt, permit, stream row last, for results only (LCK-01)
-- Errors: OB001..OB004, OB026 a bound, 22P02 result, OB009, OB010 the attempt has ended or the secret is not its own, OB011
create or replace function orbit.attempt_confirm_v1(
    p_token_sha256 bytea, p_attempt_id text, p_secret_sha256 bytea, p_outcome text, p_effect text, p_retryable boolean,
    p_result_json text
)
returns table (response_json text, replayed boolean, wake_queue_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'tasks:work');
    v_found record := orbit.attempt_read(v_credential, p_attempt_id);
    v_effect text := coalesce(p_effect, 'none');
    v_retryable boolean := coalesce(p_retryable, false);
    v_fingerprint text;
    v_task orbit.tasks;
    v_attempt_state text;
    v_receipt orbit.execution_receipts;
    v_next record;
    v_new record;
begin
    if p_outcome is null or p_outcome not in ('succeeded', 'failed') or v_effect not in ('none', 'unknown') then
        raise exception using errcode = 'OB026', message = 'outcome or effect is out of range';
    end if;
    perform orbit.task_check_json('result', coalesce(p_result_json, 'null'));
    v_fingerprint := orbit.attempt_fingerprint(p_outcome, v_effect, v_retryable, p_result_json);
    perform orbit.task_relax_commit();

    v_task := orbit.task_lock((v_found.task).queue_id, (v_found.task).task_id, p_attempt_id);
    if not orbit.secret_equals(p_secret_sha256, (v_found.attempt).lease_secret_sha256) then
        raise exception using errcode = 'OB010', message = format('attempt %s is not held with this secret', p_attempt_id);
    end if;
    select * into v_receipt from orbit.execution_receipts as r where r.attempt_id = p_attempt_id;
    if found then
        if v_receipt.request_sha256 <> v_fingerprint then
            raise exception using errcode = 'OB011', message = format('attempt %s was confirmed otherwise', p_attempt_id);
        end if;
        return query select v_receipt.response_json, true, null::text;
        return;
    end if;
    select a.state into v_attempt_state from orbit.task_attempts as a where a.attempt_id = p_attempt_id;
    if v_attempt_state <> 'RUNNING' or v_task.current_attempt_id is distinct from p_attempt_id then
        raise exception using errcode = 'OB010', message = format('attempt %s has ended', p_attempt_id);
    end if;

    v_next := orbit.task_next_state(p_outcome, v_effect, v_retryable, v_task);
    perform orbit.attempt_end(p_attempt_id, upper(p_outcome));
    v_new := orbit.task_settle(v_task.task_id, v_next.state, v_next.effect_uncertain,
        case when v_next.state <> 'queued' then p_result_json end, p_attempt_id);
    response_json := orbit.attempt_write_receipt(
        v_new.task, p_attempt_id, v_new.event_id, v_new.event_type, v_new.sequence, v_fingerprint, v_new.settled_at);
    perform orbit.task_audit_result(v_credential.credential_id, 'task.result.confirmed', v_new.task, p_attempt_id,
        v_new.event_id, v_new.event_type, v_new.sequence);
    return query select response_json, false, case when v_new.sequence is not null then v_task.queue_id::text end;
end $$;
