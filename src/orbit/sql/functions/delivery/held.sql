-- Purpose: how many deliveries of the subscription a connection holds, up to p_most (LSE-10, LSE-26): those whose deadline
--   is later than p_after. Recycling ran at the claim's own time, so that time is an exact bound, and a later one is
--   exact where the process knows its own leases (LSE-35). For the order see orbit.delivery_recycle.
-- Locks: none; the caller holds the subscription row
-- Errors: none
create or replace function orbit.delivery_held(
    p_subscription_id text, p_connection_id text, p_after timestamptz, p_most integer
)
returns integer
language plpgsql
set enable_sort = off
as $$
begin
    return (select count(*) from (
        select from orbit.event_deliveries as d
        where d.subscription_id = p_subscription_id and d.state = 'LEASED' and d.lease_expires_at > p_after
          and d.lease_connection_id = p_connection_id
        order by d.lease_expires_at limit p_most) as h);
end $$;
