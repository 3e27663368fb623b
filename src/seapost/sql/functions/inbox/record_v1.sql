-- Purpose: writes the receipts that handlers made for events taken by inbox_meet_v1 in this transaction, and returns the
-- committed_at they carry. An event that has a receipt already was not taken: the call fails as a whole.
-- Locks: the receipts it inserts, in event order.
-- Errors: SP013 argument; 23505 when an event already has a receipt.
create or replace function seapost.inbox_record_v1(
    p_consumer text, p_event_ids uuid[], p_event_digests bytea[], p_receipt_refs text[], p_receipt_candidates bytea[]
)
returns timestamptz
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform seapost.delivery_check_arguments(p_consumer, p_event_ids, cardinality(p_event_digests),
        cardinality(p_receipt_refs), cardinality(p_receipt_candidates));
    insert into seapost.inbox_receipt (event_id, committed_at, event_digest, consumer, receipt_ref, receipt_candidate)
    select g.event_id, now(), g.event_digest, p_consumer, g.receipt_ref, g.receipt_candidate
    from unnest(p_event_ids, p_event_digests, p_receipt_refs, p_receipt_candidates)
        as g (event_id, event_digest, receipt_ref, receipt_candidate)
    order by g.event_id;
    return now();
end $$;
