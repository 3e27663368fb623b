-- Purpose: of a run only the closure is added, once: open to closed, nothing else (APP-19, APP-22).
-- Locks: none.
-- Errors: 23001.
create or replace function execution.guard_run()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if old.attempt_set_state <> 'open' or new.attempt_set_state <> 'closed'
        or (to_jsonb(new) - array['attempt_set_state', 'closed_at'])
            is distinct from (to_jsonb(old) - array['attempt_set_state', 'closed_at']) then
        raise exception using errcode = '23001', message = 'execution: of a run only the closure is added, once';
    end if;
    return new;
end $$;
