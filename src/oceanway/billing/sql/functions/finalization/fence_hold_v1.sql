-- Purpose: locks the finalization of several reservations in one order, before any of them is decided on in this
--   transaction (AMB-28).
-- Locks: the fences in order, then the settlement watermarks of their reservations in order.
-- Errors: none.
create or replace function billing.finalization_fence_hold_v1(p_reservations text[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from billing.finalization_fence as f
    where f.billing_reservation_id = any (p_reservations) order by f.billing_finalization_fence_id for no key update;
    perform from billing.settlement_inbox as i
    where i.billing_reservation_id = any (p_reservations) order by i.settlement_dimension_id for no key update;
end $$;
