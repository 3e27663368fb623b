-- Purpose: locks the dimensions of some works, named by their Finishes.
-- Locks: the watermarks in order, then the catch-up fences in order.
-- Errors: none.
create or replace function billing.catch_up_lock(p_finishes bytea[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_dimensions constant text[] := array(
        select w.settlement_dimension_id from unnest(p_finishes) as u (finish)
        join billing.catch_up_work as w on w.billing_settlement_catch_up_work_ref
            = convert_from(u.finish, 'UTF8')::jsonb ->> 'billingSettlementCatchUpWorkRef');
begin
    perform from billing.settlement_inbox as i
    where i.settlement_dimension_id = any (v_dimensions) order by i.settlement_dimension_id for no key update;
    perform from billing.catch_up_fence as c
    where c.settlement_dimension_id = any (v_dimensions) order by c.settlement_dimension_id for no key update;
end $$;
