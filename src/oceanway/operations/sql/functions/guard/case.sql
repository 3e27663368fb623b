-- Purpose: a finalization case ends once and is never opened again (Annex A.7).
-- Locks: none.
-- Errors: 23001.
create or replace function operations.guard_case()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if old.state <> 'open' or new.state <> 'ended'
        or (new.projection_version, new.fence_id, new.generation, new.case_ref, new.request_event_id)
            is distinct from (old.projection_version, old.fence_id, old.generation, old.case_ref, old.request_event_id) then
        raise exception using errcode = '23001', message = 'operations: a case ends once and is never opened again';
    end if;
    return new;
end $$;
