-- Purpose: the current snapshot of a dimension moves by exactly one state version (REF-32).
-- Locks: none.
-- Errors: 23001.
create or replace function metering.guard_pointer()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.settlement_dimension_id, new.execution_attempt_id, new.charge_dimension_key)
        is distinct from (old.settlement_dimension_id, old.execution_attempt_id, old.charge_dimension_key)
        or new.settlement_input_state_version <> old.settlement_input_state_version + 1 then
        raise exception using errcode = '23001', message = 'metering: a pointer moves by one state version';
    end if;
    return new;
end $$;
