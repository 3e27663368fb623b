-- Purpose: refuses what facts never suffer: a change, a removal, an emptied table (SRC-22, SRC-23, AUD-08).
-- Locks: none.
-- Errors: 23001.
create or replace function orbit.guard_reject_change()
returns trigger
language plpgsql
as $$
begin
    raise exception using errcode = '23001', message = format('orbit: rows of %s are immutable', tg_table_name);
end $$;
