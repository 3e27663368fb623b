-- Purpose: gives a result the next sequence of its namespace and writes its journal row (JRN-04, JRN-19). The caller has
-- written the state event and locks no existing row afterwards (LCK-08). Two statements on purpose: one statement's
-- snapshot would be older than the lock. A second result of the same transaction gets the next sequence (JRN-18).
-- Locks: the stream row, for no key update.
-- Errors: 55000 at another isolation level than READ COMMITTED (JRN-15), 23514 without a stream row (JRN-16).
create or replace function orbit.journal_append(
    p_event_id text, p_namespace_id text, p_queue_id text, p_task_id text, p_type text, p_snapshot_json text
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_sequence bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception using errcode = '55000', message = 'orbit: results are confirmed at READ COMMITTED';
    end if;
    perform from orbit.event_stream_locks as l where l.namespace_id = p_namespace_id for no key update;
    if not found then
        raise exception using errcode = '23514', message = format('orbit: namespace %s has no stream row', p_namespace_id);
    end if;
    insert into orbit.result_events (event_id, namespace_id, queue_id, task_id, type, sequence, snapshot_json)
    values (p_event_id, p_namespace_id, p_queue_id, p_task_id, p_type, orbit.stream_head(p_namespace_id) + 1,
        p_snapshot_json)
    returning sequence into v_sequence;
    return v_sequence;
end $$;
