-- Purpose: acknowledges deliveries of one destination on behalf of the claims that hold them (DLV-07, DLV-12): the
-- successful finish, the frozen receipt, and the publication when the last mandatory delivery of an event is confirmed.
-- Trusts nobody: attempt, token, event digest, member and the coordinates inside the receipt's own bytes must agree; the
-- receipt digest is computed here. Returns only what was refused: 'stale' (somebody else or nobody holds it) or
-- 'invalid' (the lease is ours but the receipt does not match; nothing of that delivery changes, AMB-52).
-- Locks: for events with several mandatory members an advisory lock each, in key order, so that of two last
--   acknowledgements the second sees the first (AMB-47); then the delivery_lease rows in event order.
-- Errors: SP011 a lease moved twice, SP012 isolation, SP013 argument, 23505 a delivery stands twice in the call, 22P02 when
--   the receipt of a held delivery is no JSON (the dispatcher has decoded it before); all roll the whole call back.
create or replace function seapost.delivery_acknowledge_v1(
    p_destination text, p_event_ids uuid[], p_attempt_ids bigint[], p_tokens uuid[], p_event_digests bytea[],
    p_receipt_type text, p_receipt_schema_version text, p_receipt_algorithm text,
    p_receipt_refs text[], p_receipt_candidates bytea[]
)
returns table (event_id uuid, attempt_id bigint, result text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_moment timestamptz := seapost.clock_now();
    v_members int[];
    v_consumers text[];
    v_projection_names text[];
    v_projection_versions text[];
    v_usual text[];
    v_alone int[];
    v_several int[];
    v_shared uuid[];
    v_done bigint[];
    v_held int;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception using errcode = 'SP012', message = 'deliveries are settled in READ COMMITTED transactions only';
    end if;
    perform seapost.delivery_check_arguments(p_destination, p_event_ids, cardinality(p_attempt_ids),
        cardinality(p_tokens), cardinality(p_event_digests), cardinality(p_receipt_refs), cardinality(p_receipt_candidates));
    -- The members this receipt may satisfy, looked up once, so that the statement below joins nothing but the lease.
    select array_agg(m.member_id), array_agg(m.member_id) filter (where m.siblings = 1),
           array_agg(m.member_id) filter (where m.siblings > 1), array_agg(m.consumer_name),
           array_agg(m.projection_name), array_agg(m.projection_version),
           array_agg(seapost.delivery_usual_receipt(m.destination, m.consumer_name, m.projection_name, m.event_type, m.schema_version))
    into v_members, v_alone, v_several, v_consumers, v_projection_names, v_projection_versions, v_usual
    from seapost.delivery_set_member as m
    where m.destination = p_destination and m.expected_receipt_type = p_receipt_type
      and m.expected_receipt_schema_version = p_receipt_schema_version and p_receipt_algorithm = 'jcs-sha256-v1';
    if v_several is not null then
        select array_agg(l.event_id) into v_shared from seapost.delivery_lease as l
        where l.event_id = any (p_event_ids) and l.destination = p_destination and l.member_id = any (v_several);
        if v_shared is not null then
            perform pg_advisory_xact_lock(k.key)
            from (select hashtextextended('seapost.publication/' || s.event_id::text, 0) as key
                  from unnest(v_shared) as s (event_id) order by 1 offset 0) as k;
        end if;
    end if;

    with given as materialized (
        select g.*
        from unnest(p_event_ids, p_attempt_ids, p_tokens, p_event_digests, p_receipt_refs, p_receipt_candidates)
            as g (event_id, attempt_id, token, event_digest, receipt_ref, receipt_candidate) order by event_id),
    held as materialized (  -- lateral: one index probe per argument, whatever the statistics of an often empty table say
        select g.event_id, g.attempt_id, g.receipt_ref, sha256(g.receipt_candidate) as receipt_digest, l.member_id
        from given as g
        cross join lateral (
            select l.member_id, array_position(v_members, l.member_id) as line from seapost.delivery_lease as l
            where l.event_id = g.event_id and l.destination = p_destination and l.attempt_id = g.attempt_id
              and l.token = g.token and l.event_digest = g.event_digest and l.member_id = any (v_members)
            for update) as l
        cross join lateral (  -- the usual receipt in its one spelling says all that is asked; only another one is read
            select g.receipt_candidate = convert_to(v_usual[l.line][1] || encode(g.event_digest, 'hex')
                || '","eventId":"' || g.event_id || v_usual[l.line][2], 'UTF8') as is_usual offset 0) as u
        cross join lateral (
            select case when u.is_usual then null else convert_from(g.receipt_candidate, 'UTF8')::jsonb end as content
            offset 0) as r
        where u.is_usual or seapost.delivery_receipt_matches(r.content, g.event_id, g.event_digest, p_destination,
            v_consumers[l.line], v_projection_names[l.line], v_projection_versions[l.line])),
    moved as (  -- by key, never by ctid: a renewal updates these rows
        delete from seapost.delivery_lease as l
        where l.event_id = any (array(select h.event_id from held as h)) and l.destination = p_destination
        returning l.attempt_id),
    finished as (
        insert into seapost.delivery_attempt_finish (event_id, attempt_id, finished_at, outcome)
        select h.event_id, h.attempt_id, v_moment, 1 from held as h),
    frozen as (
        insert into seapost.delivery_acknowledgement (event_id, attempt_id, acknowledged_at, destination, receipt_digest, receipt_ref)
        select h.event_id, h.attempt_id, v_moment, p_destination, h.receipt_digest, h.receipt_ref from held as h),
    published as (
        insert into seapost.publication (event_id, published_at)
        select h.event_id, v_moment from held as h where h.member_id = any (v_alone))
    select array_agg(m.attempt_id), (select count(*) from held) into v_done, v_held from moved as m;
    if coalesce(cardinality(v_done), 0) <> v_held then
        raise exception using errcode = 'SP011', message = 'a lease moved twice', detail = 'destination ' || p_destination;
    end if;
    if v_shared is not null then
        perform seapost.delivery_publish(v_shared);
    end if;
    if v_held < cardinality(p_event_ids) then
        return query select * from seapost.delivery_refused(p_destination, p_event_ids, p_attempt_ids, p_tokens, v_done);
    end if;
end $$;
