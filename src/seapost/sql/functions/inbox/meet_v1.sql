-- Purpose: in the consumer's database and transaction, for an inbox whose handlers make their own receipts: takes the
-- events for this transaction and answers with the first receipt of those seen before, as inbox_receive_v1 does (DLV-14,
-- DLV-20). An event absent from the answer is new and nobody else's: whatever is decided about it is committed here, or not
-- at all. The receipt follows by inbox_record_v1.
-- Locks: an advisory lock for each consumer and event, in key order, to the end of the transaction; a concurrent copy waits
-- for our commit and then sees our receipt, because the answer is read by a statement of its own.
-- Errors: SP013 argument.
create or replace function seapost.inbox_meet_v1(p_consumer text, p_event_ids uuid[], p_event_digests bytea[])
returns table (
    event_id uuid, result text, receipt_ref text, receipt_candidate bytea, committed_at timestamptz, event_digest bytea
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    perform seapost.delivery_check_arguments(p_consumer, p_event_ids, cardinality(p_event_digests));
    perform pg_advisory_xact_lock(k.key)
    from (select distinct hashtextextended('seapost.inbox/' || p_consumer || '/' || e, 0) as key
          from unnest(p_event_ids) as e order by key) as k;
    return query
    select g.event_id, case when i.event_digest = g.event_digest then 'duplicate' else 'conflict' end,
        i.receipt_ref, i.receipt_candidate, i.committed_at, i.event_digest
    from unnest(p_event_ids, p_event_digests) as g (event_id, event_digest)
    cross join lateral (  -- limit: keeps one probe per event, where a join planned on an empty table would read it whole
        select i.* from seapost.inbox_receipt as i
        where i.consumer = p_consumer and i.event_id = g.event_id limit 1) as i;
end $$;
