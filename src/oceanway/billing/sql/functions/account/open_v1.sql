-- Purpose: opens an account, or confirms that it is open with this currency.
-- Locks: the account row.
-- Errors: OW001 the account has another currency; 23514 no currency.
-- Returns: whether it is new.
create or replace function billing.account_open_v1(p_account text, p_currency text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into billing.account (billing_account_id, currency) values (p_account, p_currency)
    on conflict (billing_account_id) do nothing;
    if found then
        return true;
    end if;
    perform from billing.account as a where a.billing_account_id = p_account and a.currency = p_currency;
    if not found then
        raise exception using errcode = 'OW001', message = 'the account has another currency';
    end if;
    return false;
end $$;
