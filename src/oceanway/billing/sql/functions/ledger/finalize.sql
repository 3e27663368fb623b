-- Purpose: books a finalization in full: what each dimension costs, and the rest of the reservation back to the account;
--   the rest is negative when the costs exceed the reservation, and the account pays the overshoot.
-- Locks: the reservation, then the account; the caller holds the fence.
-- Errors: OW002 the reservation is finalized already; OW003 the fact's amounts are not those of the reservation.
create or replace function billing.ledger_finalize(p_fact jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_reservation constant text := p_fact ->> 'billingReservationId';
    v_source constant text := p_fact ->> 'billingFinalizationFactRef';
    v_total constant numeric := coalesce((
        select sum((d.item ->> 'amount')::numeric) from jsonb_array_elements(p_fact -> 'dimensions') as d (item)), 0);
    v_row billing.reservation;
begin
    update billing.reservation as r
    set state = 'finalized', settled = v_total, released = r.reserved_amount - v_total
    where r.billing_reservation_id = v_reservation and r.state = 'open'
    returning r.* into v_row;
    if not found then
        raise exception using errcode = 'OW002', message = 'the reservation is finalized already';
    end if;
    if (v_row.currency, v_row.reserved_amount, v_row.settled, v_row.released, v_row.billing_account_id)
        is distinct from (p_fact ->> 'currency', (p_fact ->> 'reservedAmount')::numeric,
            (p_fact ->> 'settledAmount')::numeric, (p_fact ->> 'releasedAmount')::numeric,
            p_fact ->> 'billingAccountId') then
        raise exception using errcode = 'OW003', message = 'the amounts of the fact are not those of the reservation';
    end if;
    insert into billing.ledger_entry (billing_reservation_id, billing_account_id, settlement_dimension_id, kind, amount,
        source_ref)
    select v_reservation, v_row.billing_account_id, d.item ->> 'settlementDimensionId', 'settle',
        (d.item ->> 'amount')::numeric, v_source
    from jsonb_array_elements(p_fact -> 'dimensions') as d (item)
    order by d.item ->> 'settlementDimensionId';
    insert into billing.ledger_entry (billing_reservation_id, billing_account_id, kind, amount, source_ref)
    values (v_reservation, v_row.billing_account_id, 'release', v_row.released, v_source);
    update billing.account as a set available = a.available + v_row.released
    where a.billing_account_id = v_row.billing_account_id;
end $$;
