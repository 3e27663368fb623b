-- Purpose: one claim of one connection (TX-11, 24.4): recycles what ran out, materialises what fits, leases the lowest
--   ready sequences up to what the connection may still hold, with one audit row each, and returns them with their
--   snapshots. Nothing leased: one row with a null `i`. The three floors are the hints of LSE-35; null is no bound.
--   p_secret_sha256 holds a digest for each delivery asked for, `i` says which one a delivery got (LSE-34).
-- Locks: subscription row, then its deliveries (LCK-04). All times are read after the lock (LSE-28).
-- Errors: OB001..OB004, OB016, OB005, OB017, OB022 (everything rolls back, MIG-18), OB026 fewer digests than asked for
create or replace function orbit.delivery_claim_v1(
    p_token_sha256 bytea, p_subscription_id text, p_connection_id text, p_capacity integer, p_requested integer,
    p_secret_sha256 bytea[], p_lease_floor timestamptz, p_held_floor timestamptz, p_ready_floor bigint
)
returns table (
    reason text, scan_again boolean, pending_count integer, max_pending integer, claimed_at timestamptz, i integer,
    delivery_id text, event_id text, event_type text, event_sequence bigint, lease_epoch bigint,
    lease_expires_at timestamptz, attempts integer, attempt_budget integer, snapshot_json text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'events:consume');
    v_subscription orbit.event_subscriptions;
    v_now timestamptz;
    v_until timestamptz;
    v_scan record;
    v_floor constant bigint := coalesce(p_ready_floor, 0);
    v_free integer;
    v_ready integer;
    v_audit text[];
begin
    if coalesce(cardinality(p_secret_sha256), 0) < least(p_requested, p_capacity) then
        raise exception using errcode = 'OB026', message = 'a claim needs a digest for each delivery that it asks for';
    end if;
    select * into v_subscription from orbit.event_subscriptions as s
    where s.subscription_id = p_subscription_id for update;
    perform orbit.subscription_check(v_credential, v_subscription, p_subscription_id);
    v_now := clock_timestamp();
    if v_subscription.status = 'PAUSED' then
        return query select 'PAUSED', false, v_subscription.pending_count, v_subscription.max_pending, v_now,
            null::integer, null, null, null, null::bigint, null::bigint, null::timestamptz, null::integer, null::integer, null;
        return;
    end if;
    v_until := v_now + interval '30 seconds';
    perform orbit.delivery_recycle(p_subscription_id, coalesce(p_lease_floor, '-infinity'), v_now);
    -- recycling ran at the same time, so a later deadline is an exact bound for what the connection holds
    v_free := greatest(0, least(p_requested, p_capacity - orbit.delivery_held(
        p_subscription_id, p_connection_id, greatest(v_now, p_held_floor - interval '1 microsecond'), p_capacity)));
    v_ready := (select count(*) from (
        select from orbit.event_deliveries as r
        where r.subscription_id = p_subscription_id and r.state = 'PENDING' and r.event_sequence >= v_floor
          and r.available_at <= v_now
        order by r.event_sequence limit v_free) as r);
    v_audit := orbit.delivery_audit_texts(p_subscription_id, p_connection_id, v_now, v_until);
    -- what exists is ready at lower sequences than anything new, so the new deliveries get what is left
    v_scan := orbit.delivery_materialise(v_subscription, v_credential.credential_id, p_connection_id, p_secret_sha256,
        v_ready + 1, v_free - v_ready, v_now, v_until, v_audit);
    if v_ready > 0 then
        return query select 'DELIVERED', false, v_scan.pending_count, v_subscription.max_pending, v_now, l.*
            from orbit.delivery_lease(v_subscription, v_credential.credential_id, p_connection_id, p_secret_sha256,
                v_floor, v_ready, v_now, v_until, v_audit) as l;
    end if;
    if v_scan.leased > 0 then
        return query select 'DELIVERED', false, v_scan.pending_count, v_subscription.max_pending, v_now, l.*
            from orbit.delivery_leased_new(
                p_subscription_id, v_subscription.cursor_sequence, v_scan.cursor_sequence, v_ready + 1) as l;
    end if;
    if v_ready + v_scan.leased = 0 then
        return query select
            case when v_free = 0 then 'CAPACITY_FULL' when v_scan.pending_count >= v_subscription.max_pending
                then 'WINDOW_FULL' else 'EMPTY' end,
            v_scan.cursor_sequence > v_subscription.cursor_sequence and v_scan.cursor_sequence < v_scan.last_sequence
                and v_scan.pending_count < v_subscription.max_pending,
            v_scan.pending_count, v_subscription.max_pending, v_now, null::integer, null, null, null, null::bigint,
            null::bigint, null::timestamptz, null::integer, null::integer, null;
    end if;
end $$;
