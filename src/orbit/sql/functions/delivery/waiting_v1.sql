-- Purpose: whether a claim of the subscription could do anything: a ready delivery, a lease that ran out, or a journal
--   row of its queue beyond the cursor with room in the window (WSS-08). Takes no lock and proves nothing: it may spare
--   a claim, never stand for one. The floors are the hints of LSE-35; null is no bound.
-- Locks: none
-- Errors: none; false for a subscription that is missing or not `ACTIVE`
create or replace function orbit.delivery_waiting_v1(
    p_subscription_id text, p_lease_floor timestamptz, p_ready_floor bigint
)
returns boolean
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_now constant timestamptz := clock_timestamp();
    v_subscription orbit.event_subscriptions;
begin
    select * into v_subscription from orbit.event_subscriptions as s where s.subscription_id = p_subscription_id;
    if v_subscription.status is distinct from 'ACTIVE' then
        return false;
    end if;
    return exists (
            select from orbit.event_deliveries as d
            where d.subscription_id = p_subscription_id and d.state = 'PENDING'
              and d.event_sequence >= coalesce(p_ready_floor, 0) and d.available_at <= v_now)
        or exists (
            select from orbit.event_deliveries as d
            where d.subscription_id = p_subscription_id and d.state = 'LEASED'
              and d.lease_expires_at > coalesce(p_lease_floor, '-infinity') and d.lease_expires_at <= v_now)
        or (v_subscription.pending_count < v_subscription.max_pending and exists (
            select from orbit.result_events as e
            where e.queue_id = v_subscription.queue_id and e.sequence > v_subscription.cursor_sequence));
end $$;
