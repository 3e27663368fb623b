-- Purpose: leases the p_count lowest ready deliveries of a subscription (24.7): new digest, epoch and attempts grown,
--   deadline, one audit row each; and returns them with their snapshots, numbered from 1 in ascending sequence. p_audit is
--   what orbit.delivery_audit_texts made. Needs no row locks before the change: deliveries change under the
--   subscription's lock only.
-- Locks: the deliveries; the caller holds the subscription row
-- Errors: none
create or replace function orbit.delivery_lease(
    p_subscription orbit.event_subscriptions, p_credential_id text, p_connection_id text, p_secret_sha256 bytea[],
    p_ready_floor bigint, p_count integer, p_now timestamptz, p_until timestamptz, p_audit text[]
)
returns table (
    i integer, delivery_id text, event_id text, event_type text, event_sequence bigint, lease_epoch bigint,
    lease_expires_at timestamptz, attempts integer, attempt_budget integer, snapshot_json text
)
language plpgsql
as $$
#variable_conflict use_column
begin
    return query
        with ready as materialized (
            select d.delivery_id, row_number() over (order by d.event_sequence) as i
            from (
                select r.delivery_id, r.event_sequence from orbit.event_deliveries as r
                where r.subscription_id = p_subscription.subscription_id and r.state = 'PENDING'
                  and r.event_sequence >= p_ready_floor and r.available_at <= p_now
                order by r.event_sequence limit p_count) as d),
        leased as (
            update orbit.event_deliveries as d
            set state = 'LEASED', lease_epoch = d.lease_epoch + 1, attempts = d.attempts + 1,
                lease_secret_sha256 = p_secret_sha256[r.i], lease_connection_id = p_connection_id,
                lease_expires_at = p_until, revision = d.revision + 1, updated_at = p_now
            from ready as r where d.delivery_id = r.delivery_id
            returning r.i, d.delivery_id, d.event_id, d.event_sequence, d.lease_epoch, d.attempts, d.attempt_budget),
        audited as (
            insert into orbit.audit_log (audit_id, namespace_id, credential_id, action, resource_type, resource_id,
                detail_json, created_at)
            select p_audit[1] || substr(replace(gen_random_uuid()::text, '-', ''), 14), p_subscription.namespace_id,
                p_credential_id, 'event.delivery.authorized', 'event_delivery', l.delivery_id,
                p_audit[2] || l.delivery_id || '","event_id":"' || l.event_id || '","event_sequence":' || l.event_sequence
                || ',"lease_epoch":' || l.lease_epoch || ',"attempts":' || l.attempts || p_audit[3], p_now
            from leased as l)
        select l.i::integer, l.delivery_id::text, l.event_id::text, e.type::text, l.event_sequence, l.lease_epoch,
            p_until, l.attempts, l.attempt_budget, e.snapshot_json
        from leased as l join orbit.result_events as e on e.event_id = l.event_id
        order by l.i;
end $$;
