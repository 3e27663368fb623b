-- Purpose: refuses what facts never suffer: a change, a removal, an emptied table (CASE-10, AMB-39).
-- Locks: none.
-- Errors: 23001.
create or replace function execution.guard_reject_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = '23001', message = format('execution: rows of %s are immutable', tg_table_name);
end $$;
