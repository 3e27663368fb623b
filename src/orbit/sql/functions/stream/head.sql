-- Purpose: the newest committed sequence of a namespace: that of its newest journal row, or the one before the retained
-- boundary when nothing is left (JRN-20). Takes no lock and waits for nobody (JRN-09). Null without a stream row and
-- without a journal.
-- Locks: none.
-- Errors: none.
create or replace function orbit.stream_head(p_namespace_id text)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
as $$
begin
    return greatest(
        (select r.sequence from orbit.result_events as r
         where r.namespace_id = p_namespace_id order by r.sequence desc limit 1),
        (select l.retained_from_sequence - 1 from orbit.event_stream_locks as l where l.namespace_id = p_namespace_id));
end $$;
