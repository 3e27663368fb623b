-- Purpose: books a deposit once, by its reference.
-- Locks: the account row.
-- Errors: OW001 the reference belongs to another deposit; OW004 there is no such account; 23514 no positive amount.
-- Returns: whether it was booked now.
create or replace function billing.account_deposit_v1(p_deposit_ref text, p_account text, p_amount numeric)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from billing.account as a where a.billing_account_id = p_account for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'there is no such account';
    end if;
    insert into billing.deposit (deposit_ref, billing_account_id, amount) values (p_deposit_ref, p_account, p_amount)
    on conflict (deposit_ref) do nothing;
    if not found then
        perform from billing.deposit as d
        where d.deposit_ref = p_deposit_ref and d.billing_account_id = p_account and d.amount = p_amount;
        if not found then
            raise exception using errcode = 'OW001', message = 'the reference belongs to another deposit';
        end if;
        return false;
    end if;
    update billing.account as a set deposited = a.deposited + p_amount, available = a.available + p_amount
    where a.billing_account_id = p_account;
    return true;
end $$;
