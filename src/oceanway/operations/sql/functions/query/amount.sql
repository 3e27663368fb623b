-- Purpose: an amount or quantity in its only spelling, a string without superfluous zeros.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_amount(p_amount numeric)
returns text
language sql
immutable
as $$ select pg_catalog.trim_scale(p_amount)::text $$;
