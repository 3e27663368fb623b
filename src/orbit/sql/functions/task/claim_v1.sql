-- Purpose: hands the oldest ready tasks of a queue to a worker (TX-02, TSK-09): task `running`, an attempt with the digest
--   of its secret, a permit, `task.started`, audit; at most as many as there are free permits (TSK-08). No stream row.
-- Locks: queue row, tasks in ascending order of their id
-- Errors: OB001..OB004, OB026 a bound, OB005/OB006 queue, OB007 queue disabled
create or replace function orbit.task_claim_v1(
    p_token_sha256 bytea, p_queue text, p_worker_id text, p_max integer, p_secret_sha256 bytea[], p_available_from timestamptz
)
returns table (
    i integer, task_id text, attempt_id text, number integer, lease_expires_at timestamptz, available_at timestamptz,
    input_json text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'tasks:work');
    v_queue orbit.queues := orbit.access_queue_named(v_credential, p_queue);
    v_free integer;
    v_ids text[];
    v_moment timestamptz;
    v_task orbit.tasks;
    v_attempt text;
begin
    if p_max is null or p_max not between 1 and 16 or coalesce(cardinality(p_secret_sha256), 0) < p_max
        or p_worker_id is null or char_length(p_worker_id) not between 1 and 128 then
        raise exception using errcode = 'OB026', message = 'worker_id, max or the number of secrets is out of range';
    end if;
    select * into v_queue from orbit.queues as q where q.queue_id = v_queue.queue_id for update;
    if not v_queue.enabled then
        raise exception using errcode = 'OB007', message = format('queue %s is disabled', p_queue);
    end if;
    select v_queue.max_running - count(*) into v_free from orbit.permits as p where p.queue_id = v_queue.queue_id;
    v_moment := clock_timestamp();
    v_ids := orbit.task_choose(v_queue.queue_id, greatest(least(p_max, v_free), 0), p_available_from, v_moment);
    perform 1 from orbit.tasks as t where t.task_id = any(v_ids) order by t.task_id for update;
    lease_expires_at := v_moment + make_interval(secs => v_queue.lease_seconds);
    for v_line in 1 .. cardinality(v_ids) loop
        v_attempt := orbit.id_new('att');
        update orbit.tasks as t
        set state = 'running', revision = t.revision + 1, attempt_count = t.attempt_count + 1,
            current_attempt_id = v_attempt, updated_at = v_moment
        where t.task_id = v_ids[v_line]
        returning t.* into v_task;
        insert into orbit.task_attempts (attempt_id, namespace_id, task_id, number, state, credential_id, worker_id,
            lease_secret_sha256, lease_expires_at, started_at)
        values (v_attempt, v_task.namespace_id, v_task.task_id, v_task.attempt_count, 'RUNNING', v_credential.credential_id,
            p_worker_id, p_secret_sha256[v_line], lease_expires_at, v_moment);
        insert into orbit.permits (permit_id, queue_id, attempt_id, created_at)
        values (orbit.id_new('permit'), v_queue.queue_id, v_attempt, v_moment);
        insert into orbit.events (event_id, namespace_id, queue_id, task_id, attempt_id, type, task_revision, created_at)
        values (orbit.id_new('evt'), v_task.namespace_id, v_task.queue_id, v_task.task_id, v_attempt, 'task.started',
            v_task.revision, v_moment);
        perform orbit.audit_write(v_task.namespace_id, v_credential.credential_id, 'task.claimed', 'task', v_task.task_id,
            (select row_to_json(d) from (select v_task.task_id, v_attempt, v_task.queue_id) as d (task_id, attempt_id, queue_id)));
        return query select v_line, v_task.task_id::text, v_attempt, v_task.attempt_count, lease_expires_at,
            v_task.available_at, v_task.input_json;
    end loop;
end $$;
