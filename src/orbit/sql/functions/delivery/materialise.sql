-- Purpose: scans the journal behind a subscription's cursor, creates the deliveries that fit into the window, and moves
--   cursor and pending_count (24.2, MAT-01 to MAT-16). Head, boundary and rows come from one snapshot (MAT-16); at most
--   100 rows of the queue are examined, in ascending sequence. The scan stops before the first wanted row that does not
--   fit; where all types are wanted it need not read further than that row. A full window examines nothing. Only when
--   nothing was held up and the queue had no more does the cursor move to the head (MAT-13).
--   The first p_fresh of the new deliveries are leased as they are made, as the same claim would do next: one version of
--   the row and its index entries instead of two (p_secret_sha256 from p_first on; p_audit as in orbit.delivery_lease).
--   Returns the new cursor, the new pending_count, the head of the scan, and how many were leased.
-- Locks: none of its own; the caller holds the subscription row
-- Errors: OB022 cursor before the retained boundary (MIG-17, MIG-18)
create or replace function orbit.delivery_materialise(
    p_subscription orbit.event_subscriptions, p_credential_id text, p_connection_id text, p_secret_sha256 bytea[],
    p_first integer, p_fresh integer, p_now timestamptz, p_until timestamptz, p_audit text[],
    out cursor_sequence bigint, out pending_count integer, out last_sequence bigint, out leased integer
)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_room integer := p_subscription.max_pending - p_subscription.pending_count;
    v_limit integer := case when v_room <= 0 then 0
                            when cardinality(p_subscription.types) = 4 then least(100, v_room + 1) else 100 end;
    v_id text := orbit.id_prefix('dlv', p_now);
    r record;
begin
    with stream as materialized (
        select v.last_sequence, v.retained_from_sequence from orbit.event_streams as v
        where v.namespace_id = p_subscription.namespace_id),
    examined as (
        select e.sequence, e.event_id, e.type = any (p_subscription.types) as wanted
        from stream as s cross join lateral (
            select j.sequence, j.event_id, j.type from orbit.result_events as j
            where j.queue_id = p_subscription.queue_id and j.sequence > p_subscription.cursor_sequence
              and j.sequence <= s.last_sequence
            order by j.sequence limit v_limit) as e),
    placed as materialized (  -- place: how many wanted rows there are up to here
        select e.sequence, e.event_id, e.wanted,
            count(*) filter (where e.wanted) over (order by e.sequence rows unbounded preceding) as place
        from examined as e),
    created as (
        insert into orbit.event_deliveries (delivery_id, namespace_id, subscription_id, event_id, state, attempts,
            lease_epoch, created_at, updated_at, legacy, event_sequence, attempt_budget, available_at, revision,
            lease_secret_sha256, lease_connection_id, lease_expires_at)
        select v_id || substr(replace(gen_random_uuid()::text, '-', ''), 14), p_subscription.namespace_id,
            p_subscription.subscription_id, p.event_id, case when f.fresh then 'LEASED' else 'PENDING' end,
            f.fresh::integer, f.fresh::integer, p_now, p_now, false, p.sequence, p_subscription.max_attempts, p_now,
            1 + f.fresh::integer, case when f.fresh then p_secret_sha256[p_first - 1 + p.place] end,
            case when f.fresh then p_connection_id end, case when f.fresh then p_until end
        from placed as p cross join lateral (select p.place <= p_fresh as fresh) as f
        where p.wanted and p.place <= v_room
        returning delivery_id, event_id, event_sequence, lease_epoch),
    audited as (
        insert into orbit.audit_log (audit_id, namespace_id, credential_id, action, resource_type, resource_id,
            detail_json, created_at)
        select p_audit[1] || substr(replace(gen_random_uuid()::text, '-', ''), 14), p_subscription.namespace_id,
            p_credential_id, 'event.delivery.authorized', 'event_delivery', c.delivery_id,
            p_audit[2] || c.delivery_id || '","event_id":"' || c.event_id || '","event_sequence":' || c.event_sequence
            || ',"lease_epoch":1,"attempts":1' || p_audit[3], p_now
        from created as c where c.lease_epoch = 1)
    select s.last_sequence, s.retained_from_sequence, p.* into r
    from stream as s cross join (
        select count(*) as examined, count(*) filter (where p.wanted and p.place <= v_room) as added,
            coalesce(bool_or(p.place > v_room), false) as held, max(p.sequence) filter (where p.place <= v_room) as reached
        from placed as p) as p;

    perform orbit.subscription_check_retained(p_subscription.cursor_sequence, r.retained_from_sequence);
    cursor_sequence := coalesce(r.reached, p_subscription.cursor_sequence);
    if not r.held and r.examined < v_limit then  -- never with a full window, whose limit is 0
        cursor_sequence := greatest(cursor_sequence, r.last_sequence);
    end if;
    pending_count := p_subscription.pending_count + r.added;
    last_sequence := r.last_sequence;
    leased := least(r.added, p_fresh);
    if cursor_sequence <> p_subscription.cursor_sequence then
        update orbit.event_subscriptions as s
        set cursor_sequence = delivery_materialise.cursor_sequence, pending_count = delivery_materialise.pending_count
        where s.subscription_id = p_subscription.subscription_id;
    end if;
end $$;
