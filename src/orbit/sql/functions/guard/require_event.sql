-- Purpose: proves at commit that a journal row has its state event (SRC-21), that its namespace has a stream row (JRN-16),
-- and that the sequence has no gap above the retained boundary (JRN-21). Lookups name the columns of one index (GEN-11).
-- Locks: none.
-- Errors: 23514.
create or replace function orbit.guard_require_event()
returns trigger
language plpgsql
security definer  -- runs at commit, outside the function that wrote the row
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_event orbit.events%rowtype;
    v_boundary bigint;
begin
    select e.* into v_event from orbit.events as e where e.event_id = new.event_id;
    if not found or (v_event.namespace_id, v_event.queue_id, v_event.task_id, v_event.type)
            is distinct from (new.namespace_id, new.queue_id, new.task_id, new.type) then
        raise exception using errcode = '23514', message = format('orbit: journal row %s has no state event', new.event_id);
    end if;
    select l.retained_from_sequence into v_boundary
    from orbit.event_stream_locks as l where l.namespace_id = new.namespace_id;
    if not found then
        raise exception using errcode = '23514', message = format('orbit: namespace %s has no stream row', new.namespace_id);
    end if;
    if new.sequence > v_boundary then
        perform from orbit.result_events as r where r.namespace_id = new.namespace_id and r.sequence = new.sequence - 1;
        if not found then
            raise exception using errcode = '23514', message = format('orbit: sequence %s has no predecessor', new.sequence);
        end if;
    end if;
    return null;
end $$;
