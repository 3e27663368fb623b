-- Purpose: locks the finalization of reservations and returns their states, so that the caller can decide on them in
--   this transaction (FIN-02, CAT-02, AMB-28). A reservation that is not bound yet has no row.
-- Locks: the fences in order, then the settlement watermarks of their reservations in order.
-- Errors: none.
create or replace function billing.finalization_fence_lock_v1(p_reservations text[])
returns table (billing_reservation_id text, state jsonb)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform billing.finalization_fence_hold_v1(p_reservations);
    return query
    select f.billing_reservation_id, billing.finalization_fence_state(f.billing_reservation_id)
    from billing.finalization_fence as f
    where f.billing_reservation_id = any (p_reservations);
end $$;
