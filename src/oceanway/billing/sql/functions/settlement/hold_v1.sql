-- Purpose: takes everything that the settlement input events of one transaction may change, before the first of them is
--   handled, so that two transactions never wait for each other (AMB-28).
-- Locks: the finalization fences in order, the settlement watermarks of their reservations and the given ones in order, then
--   the catch-up fences in order.
-- Errors: none.
create or replace function billing.settlement_hold_v1(p_reservations text[], p_dimensions text[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from billing.finalization_fence as f
    where f.billing_reservation_id = any (p_reservations) order by f.billing_finalization_fence_id for no key update;
    perform from billing.settlement_inbox as i
    where i.billing_reservation_id = any (p_reservations) or i.settlement_dimension_id = any (p_dimensions)
    order by i.settlement_dimension_id for no key update;
    perform from billing.catch_up_fence as c
    where c.settlement_dimension_id = any (p_dimensions) order by c.settlement_dimension_id for no key update;
end $$;
