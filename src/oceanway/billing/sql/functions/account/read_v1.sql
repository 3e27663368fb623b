-- Purpose: the currency and the money of an account, as decimal texts without superfluous zeros.
-- Locks: none.
-- Errors: none; no row for an unknown account.
create or replace function billing.account_read_v1(p_account text)
returns table (currency text, deposited text, available text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select a.currency, trim_scale(a.deposited)::text, trim_scale(a.available)::text
    from billing.account as a where a.billing_account_id = p_account
$$;
