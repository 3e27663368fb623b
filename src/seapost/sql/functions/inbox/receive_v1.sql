-- Purpose: in the consumer's database and transaction, writes a receipt for every event not seen before and answers with
-- the first receipt of those seen before (DLV-14, DLV-20). An event absent from the answer is new, and its effect belongs
-- into this same transaction. 'conflict': the event is known with other content; nothing is written for it.
-- Locks: the receipts it inserts, in event order; a concurrent duplicate waits for our commit.
-- Errors: SP013 argument.
create or replace function seapost.inbox_receive_v1(
    p_consumer text, p_event_ids uuid[], p_event_digests bytea[], p_receipt_refs text[], p_receipt_candidates bytea[]
)
returns table (
    event_id uuid, result text, receipt_ref text, receipt_candidate bytea, committed_at timestamptz, event_digest bytea
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_new uuid[];
begin
    perform seapost.delivery_check_arguments(p_consumer, p_event_ids, cardinality(p_event_digests),
        cardinality(p_receipt_refs), cardinality(p_receipt_candidates));
    with written as (
        insert into seapost.inbox_receipt (event_id, committed_at, event_digest, consumer, receipt_ref, receipt_candidate)
        select g.event_id, now(), g.event_digest, p_consumer, g.receipt_ref, g.receipt_candidate
        from unnest(p_event_ids, p_event_digests, p_receipt_refs, p_receipt_candidates)
            as g (event_id, event_digest, receipt_ref, receipt_candidate)
        order by g.event_id
        on conflict (consumer, event_id) do nothing
        returning event_id)
    select array_agg(w.event_id) into v_new from written as w;
    if coalesce(cardinality(v_new), 0) < cardinality(p_event_ids) then
        if (select count(distinct e) from unnest(p_event_ids) as e) < cardinality(p_event_ids) then
            raise exception using errcode = 'SP013', message = 'an event stands twice in one call';
        end if;
        return query
        select g.event_id, case when i.event_digest = g.event_digest then 'duplicate' else 'conflict' end,
            i.receipt_ref, i.receipt_candidate, i.committed_at, i.event_digest
        from unnest(p_event_ids, p_event_digests) as g (event_id, event_digest)
        cross join lateral (  -- limit: keeps one probe per event, where a join planned on an empty table would read it whole
            select i.* from seapost.inbox_receipt as i
            where i.consumer = p_consumer and i.event_id = g.event_id limit 1) as i
        where g.event_id <> all (coalesce(v_new, '{}'));
    end if;
end $$;
