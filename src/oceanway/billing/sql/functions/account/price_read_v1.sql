-- Purpose: unit prices as decimal texts, one for each key in order; null where there is none.
-- Locks: none.
-- Errors: none.
create or replace function billing.account_price_read_v1(
    p_price_book_refs text[], p_price_book_versions text[], p_quantity_units text[], p_currencies text[]
)
returns table (unit_price text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select trim_scale(p.unit_price)::text
    from unnest(p_price_book_refs, p_price_book_versions, p_quantity_units, p_currencies)
        with ordinality as k (book, version, unit, currency, line)
    left join billing.price as p
        on p.price_book_ref = k.book and p.price_book_version = k.version
       and p.quantity_unit = k.unit and p.currency = k.currency
    order by k.line
$$;
