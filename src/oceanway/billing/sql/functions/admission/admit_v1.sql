-- Purpose: admits reservations, all or none (TX-09, REF-16, AMB-05): each with its fence, first work and booking, and takes
--   what they reserve from their accounts. Items are parallel arrays; one that was admitted before changes nothing.
-- Locks: reservations and fences in the order given, then the accounts in order.
-- Errors: OW001 another admission of a reservation or run; OW003 documents that do not belong together, or a currency that
--   is not the account's; OW004 no such account; OW008 an account does not cover what is reserved.
-- Returns: how many are new.
create or replace function billing.admission_admit_v1(
    p_manifests bytea[], p_amounts numeric[], p_currencies text[], p_triggers bytea[], p_works bytea[]
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
    v_new text[] := '{}';
    v_account text;
begin
    for v_item in
        select i.* from unnest(p_manifests, p_amounts, p_currencies, p_triggers, p_works)
            as i (manifest, amount, currency, trigger, work)
        order by convert_from(i.manifest, 'UTF8')::jsonb ->> 'billingReservationId'
    loop
        v_account := convert_from(v_item.manifest, 'UTF8')::jsonb ->> 'billingAccountId';
        perform from billing.account as a where a.billing_account_id = v_account and a.currency = v_item.currency;
        if not found then
            perform from billing.account as a where a.billing_account_id = v_account;
            raise exception using errcode = case when found then 'OW003' else 'OW004' end,
                message = 'there is no such account in this currency';
        end if;
        if billing.admission_write(v_item.manifest, v_item.amount, v_item.currency, v_item.trigger, v_item.work) then
            v_new := v_new || (convert_from(v_item.manifest, 'UTF8')::jsonb ->> 'billingReservationId');
        end if;
    end loop;
    for v_item in
        select r.billing_account_id, sum(r.reserved_amount) as amount from billing.reservation as r
        where r.billing_reservation_id = any (v_new)
        group by r.billing_account_id order by r.billing_account_id
    loop
        update billing.account as a set available = a.available - v_item.amount
        where a.billing_account_id = v_item.billing_account_id and a.available >= v_item.amount;
        if not found then
            raise exception using errcode = 'OW008', message = 'the account does not cover the reservation';
        end if;
    end loop;
    return cardinality(v_new);
end $$;
