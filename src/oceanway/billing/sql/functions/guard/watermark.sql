-- Purpose: a watermark only moves forward, by one inbox revision each time, and never to another dimension (CAT-02).
-- Locks: none.
-- Errors: 23001.
create or replace function billing.guard_watermark()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.inbox_revision <> old.inbox_revision + 1
        or new.settlement_input_state_version <= old.settlement_input_state_version
        or (new.settlement_dimension_id, new.billing_reservation_id, new.billing_account_id, new.run_id, new.run_step_id,
                new.execution_attempt_id, new.charge_dimension_key)
           <> (old.settlement_dimension_id, old.billing_reservation_id, old.billing_account_id, old.run_id,
                old.run_step_id, old.execution_attempt_id, old.charge_dimension_key) then
        raise exception using errcode = '23001', message = 'billing: a settlement watermark only moves forward';
    end if;
    return new;
end $$;
