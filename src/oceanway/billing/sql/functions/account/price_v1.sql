-- Purpose: enters one unit price of a version of a price book, or confirms it; a version never changes.
-- Locks: the primary key.
-- Errors: OW001 the version has another unit price; 23514 a negative price or more than nine fraction digits.
-- Returns: whether it is new.
create or replace function billing.account_price_v1(
    p_price_book_ref text, p_price_book_version text, p_quantity_unit text, p_currency text, p_unit_price numeric
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into billing.price (price_book_ref, price_book_version, quantity_unit, currency, unit_price)
    values (p_price_book_ref, p_price_book_version, p_quantity_unit, p_currency, p_unit_price)
    on conflict do nothing;
    if found then
        return true;
    end if;
    perform from billing.price as p
    where p.price_book_ref = p_price_book_ref and p.price_book_version = p_price_book_version
      and p.quantity_unit = p_quantity_unit and p.currency = p_currency and p.unit_price = p_unit_price;
    if not found then
        raise exception using errcode = 'OW001', message = 'the version of the price book has another unit price';
    end if;
    return false;
end $$;
