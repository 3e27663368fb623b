-- Purpose: of a declared conflict only the repair is added, once.
-- Locks: none.
-- Errors: 23001.
create or replace function execution.guard_conflict()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if old.repaired_at is not null or new.repaired_at is null
        or (to_jsonb(new) - 'repaired_at') is distinct from (to_jsonb(old) - 'repaired_at') then
        raise exception using errcode = '23001', message = 'execution: of a conflict only the repair is added, once';
    end if;
    return new;
end $$;
