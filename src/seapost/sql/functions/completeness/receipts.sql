-- Purpose: the receipts of a version: how many, and the digest of the set of events they are about. Equal to the source's, both
-- anti-joins between them are empty.
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_receipts(p_key text)
returns table (member_count bigint, set_digest text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select count(*), seapost.completeness_set_digest(count(*),
        sum(hash_record_extended(row (i.event_id, i.event_digest), 1)::numeric),
        sum(hash_record_extended(row (i.event_id, i.event_digest), 2)::numeric))
    from seapost.inbox_receipt as i
    where i.consumer = p_key
$$;
