-- Purpose: leases the latest works of catch-up fences that are due, longest waiting first, with one Start each (AMB-45), and
--   returns with each what its evaluation needs: the state of the dimension, the price of its unit and what the account
--   covers. An expired lease is claimed anew with the next attempt number.
-- Locks: the catch-up fences claimed; those that others hold are skipped.
-- Errors: OW003 a limit or a lease that is not positive.
create or replace function billing.catch_up_claim_v1(p_owner text, p_limit integer, p_lease interval)
returns table (
    work bytea, fence_revision bigint, attempt_number integer, fencing_token bigint, dimension jsonb, economic_identity jsonb,
    unit_price text, available text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if not coalesce(p_limit between 1 and 1000 and p_lease > interval '0', false) then
        raise exception using errcode = 'OW003', message = 'a claim needs a limit of 1 to 1000 and a lease above zero';
    end if;
    return query
    with due as materialized (
        select f.settlement_dimension_id from billing.catch_up_fence as f
        where f.active_work_ref is not null and f.available_at <= clock_timestamp()
        order by f.available_at limit p_limit for no key update skip locked),
    leased as (
        update billing.catch_up_fence as f
        set lease_owner = p_owner, fencing_token = nextval('billing.fencing_token'),
            lease_expires_at = clock_timestamp() + p_lease, available_at = clock_timestamp() + p_lease,
            attempt_number = f.attempt_number + 1
        from due as d where f.settlement_dimension_id = d.settlement_dimension_id
        returning f.*),
    started as (
        insert into billing.catch_up_work_start (billing_settlement_catch_up_work_ref, attempt_number, fencing_token,
            lease_owner)
        select l.active_work_ref, l.attempt_number, l.fencing_token, l.lease_owner from leased as l)
    select w.document, l.fence_revision, l.attempt_number, l.fencing_token,
        billing.dimension_document(s), i.settlement_economic_identity, trim_scale(p.unit_price)::text,
        trim_scale(a.available)::text
    from leased as l
    join billing.catch_up_work as w on w.billing_settlement_catch_up_work_ref = l.active_work_ref
    join billing.settlement_inbox as i on i.settlement_dimension_id = l.settlement_dimension_id
    join billing.dimension_state as s on s.settlement_dimension_id = l.settlement_dimension_id
    join billing.reservation as r on r.billing_reservation_id = l.billing_reservation_id
    join billing.account as a on a.billing_account_id = r.billing_account_id
    left join billing.price as p
      on p.price_book_ref = i.settlement_economic_identity ->> 'priceBookRef'
     and p.price_book_version = i.settlement_economic_identity ->> 'priceBookVersion'
     and p.quantity_unit = i.settlement_economic_identity ->> 'quantityUnit'
     and p.currency = i.settlement_economic_identity ->> 'currency';
end $$;
