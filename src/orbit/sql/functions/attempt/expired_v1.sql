-- Purpose: ids of running attempts whose lease has run out (TSK-12), the longest first: of a queue that a worker's
--   credential names, or with null for token and queue of the whole database. They are found by the permits, one per
--   running attempt, so no finished attempt is ever read. A hint: recovery looks again under the locks.
-- Locks: none
-- Errors: OB001..OB004, OB005/OB006 queue, OB026 limit
create or replace function orbit.attempt_expired_v1(p_token_sha256 bytea, p_queue text, p_limit integer)
returns setof text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_queue orbit.queues;
begin
    if p_limit is null or p_limit < 1 then
        raise exception using errcode = 'OB026', message = 'limit is out of range';
    end if;
    if p_token_sha256 is null and p_queue is null then
        return query
        select a.attempt_id::text from orbit.permits as p join orbit.task_attempts as a on a.attempt_id = p.attempt_id
        where a.state = 'RUNNING' and a.lease_expires_at < clock_timestamp()
        order by a.lease_expires_at, a.attempt_id limit p_limit;
        return;
    end if;
    v_queue := orbit.access_queue_named(orbit.access_check(p_token_sha256, 'tasks:work'), p_queue);
    return query
    select a.attempt_id::text from orbit.permits as p join orbit.task_attempts as a on a.attempt_id = p.attempt_id
    where p.queue_id = v_queue.queue_id and a.state = 'RUNNING' and a.lease_expires_at < clock_timestamp()
    order by a.lease_expires_at, a.attempt_id limit p_limit;
end $$;
