-- Purpose: a pending successor is consumed once and never changed otherwise (REF-40, CASE-10).
-- Locks: none.
-- Errors: 23001.
create or replace function operations.guard_successor()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if old.state <> 'pending' or new.state <> 'consumed'
        or (new.projection_version, new.fence_id, new.generation, new.document)
            is distinct from (old.projection_version, old.fence_id, old.generation, old.document) then
        raise exception using errcode = '23001', message = 'operations: a successor is consumed once and kept';
    end if;
    return new;
end $$;
