-- Purpose: ids of the oldest ready tasks of a queue, oldest first. The caller holds the queue row, without which no task of
--   the queue changes, so they can be chosen first and locked in the order of their key afterwards (LCK-09). A lower bound
--   on available_at spares the walk over index entries of tasks long since taken; it is a hint (TSK-09, LSE-35).
-- Locks: none
-- Errors: none
create or replace function orbit.task_choose(
    p_queue_id text, p_limit integer, p_available_from timestamptz, p_available_until timestamptz
)
returns text[]
language plpgsql
as $$
begin
    return array(
        select t.task_id from orbit.tasks as t
        where t.queue_id = p_queue_id and t.state = 'queued'
            and t.available_at between coalesce(p_available_from, '-infinity') and p_available_until
        order by t.available_at, t.task_id
        limit p_limit);
end $$;
