-- Purpose: ends the leases of a subscription whose deadline has passed: with budget left back to `PENDING` after
--   min(2^(attempts-1), 30) seconds from now (LSE-13, LSE-29), else to `EXPIRED` (LSE-14). The proof stays, so a late
--   ACK still counts (LSE-24); pending_count does not change. p_floor: see LSE-35. The order by deadline makes every
--   index but that of the leases useless to a planner who believes the table to be empty (GEN-11).
-- Locks: the deliveries; the caller holds the subscription row
-- Errors: none
create or replace function orbit.delivery_recycle(p_subscription_id text, p_floor timestamptz, p_now timestamptz)
returns void
language plpgsql
set enable_sort = off
as $$
begin
    perform 1 from orbit.event_deliveries as d
    where d.subscription_id = p_subscription_id and d.state = 'LEASED'
      and d.lease_expires_at > p_floor and d.lease_expires_at <= p_now
    order by d.lease_expires_at limit 1;
    if not found then
        return;
    end if;
    update orbit.event_deliveries as d
    set state = case when d.attempts >= d.attempt_budget then 'EXPIRED' else 'PENDING' end,
        available_at = case when d.attempts >= d.attempt_budget then d.available_at
                            else p_now + make_interval(secs => orbit.delivery_backoff_seconds(d.attempts)) end,
        revision = d.revision + 1, updated_at = p_now
    where d.delivery_id = any (array(
        select r.delivery_id from orbit.event_deliveries as r
        where r.subscription_id = p_subscription_id and r.state = 'LEASED'
          and r.lease_expires_at > p_floor and r.lease_expires_at <= p_now
        order by r.lease_expires_at));
end $$;
