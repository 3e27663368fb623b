-- Purpose: acknowledges a group of deliveries of one subscription, each with its own proof (TX-12, 24.5, 24.8). Answers as
--   if the ACKs had come one after the other: a second one of the same delivery is a duplicate of the first (LSE-36). A
--   proof counts until a new claim replaces it, whatever became of the lease, the connection or the status (LSE-23,
--   LSE-30, PAU-03). Epoch and digest are both compared for every row, the digest behind a fresh random value, so no
--   failure is faster than another (LSE-09). Refused and repeated ACKs write nothing (AUD-05).
-- Locks: subscription row, then its deliveries (LCK-04). The time is read after the lock (LSE-28).
-- Errors: OB001..OB004, OB016, OB005, OB017; refused proofs are rows with a code
create or replace function orbit.delivery_acknowledge_v1(
    p_token_sha256 bytea, p_subscription_id text, p_connection_id text, p_delivery_ids text[], p_lease_epochs bigint[],
    p_secret_sha256 bytea[]
)
returns table (i integer, delivery_id text, code text, acked_at timestamptz, duplicate boolean)
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
    v_audit text[];
begin
    select * into v_subscription from orbit.event_subscriptions as s
    where s.subscription_id = p_subscription_id for update;
    perform orbit.subscription_check(v_credential, v_subscription, p_subscription_id);
    v_now := clock_timestamp();
    v_audit := orbit.delivery_audit_texts(p_subscription_id, p_connection_id, v_now, v_now);
    return query
        with given as materialized (
            select g.delivery_id, g.lease_epoch, g.digest, g.i, uuid_send(gen_random_uuid()) as blind
            from unnest(p_delivery_ids, p_lease_epochs, p_secret_sha256)
                with ordinality as g (delivery_id, lease_epoch, digest, i)),
        found as materialized (  -- by key alone, compared afterwards (GEN-11)
            select g.i, d.delivery_id, d.subscription_id = p_subscription_id as is_ours, d.state, d.acked_at,
                d.lease_epoch = g.lease_epoch as epoch_ok,
                coalesce(sha256(g.blind || d.lease_secret_sha256) = sha256(g.blind || g.digest), false) as secret_ok
            from given as g join orbit.event_deliveries as d on d.delivery_id = g.delivery_id),
        effective as materialized (
            select f.delivery_id, min(f.i) as i from found as f
            where f.is_ours and f.epoch_ok and f.secret_ok and f.state <> 'ACKED' group by f.delivery_id),
        acked as (
            update orbit.event_deliveries as d
            set state = 'ACKED', acked_at = v_now, revision = d.revision + 1, updated_at = v_now
            from effective as f where d.delivery_id = f.delivery_id
            returning d.delivery_id, d.event_id, d.event_sequence, d.lease_epoch, d.attempts, d.lease_connection_id,
                d.lease_expires_at),
        counted as (
            update orbit.event_subscriptions as s
            set pending_count = s.pending_count - (select count(*) from effective)
            where s.subscription_id = p_subscription_id and exists (select from effective)),
        audited as (
            insert into orbit.audit_log (audit_id, namespace_id, credential_id, action, resource_type, resource_id,
                detail_json, created_at)
            select v_audit[1] || substr(replace(gen_random_uuid()::text, '-', ''), 14), v_subscription.namespace_id,
                v_credential.credential_id, 'event.delivery.acked', 'event_delivery', a.delivery_id,
                v_audit[2] || a.delivery_id || '","event_id":"' || a.event_id || '","event_sequence":' || a.event_sequence
                || ',"lease_epoch":' || a.lease_epoch || ',"attempts":' || a.attempts || ',"connection_id":'
                || to_json(a.lease_connection_id)::text || ',"lease_expires_at":"' || orbit.time_text(a.lease_expires_at)
                || v_audit[4] || case when a.lease_expires_at <= v_now then 'true}' else 'false}' end, v_now
            from acked as a)
        select g.i::integer, g.delivery_id,
            case when f.is_ours is not true then 'DELIVERY_NOT_FOUND'
                 when not (f.epoch_ok and f.secret_ok) then 'DELIVERY_LEASE_LOST' end,
            case when f.is_ours and f.epoch_ok and f.secret_ok then coalesce(f.acked_at, v_now) end,
            coalesce(f.is_ours and f.epoch_ok and f.secret_ok, false) and e.i is null
        from given as g left join found as f on f.i = g.i left join effective as e on e.i = g.i
        order by g.i;
end $$;
