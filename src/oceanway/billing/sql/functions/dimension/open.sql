-- Purpose: opens the state of a dimension at revision 0, caused by the finalization (REF-50). A dimension that has a state
--   keeps it.
-- Locks: the primary key.
-- Errors: OW002 the reservation is not finalized.
create or replace function billing.dimension_open(
    p_dimension text, p_reservation text, p_place jsonb, p_settled numeric, p_last_evaluated jsonb
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into billing.dimension_state (settlement_dimension_id, billing_reservation_id, run_step_id,
        execution_attempt_id, charge_dimension_key, settled_amount, last_evaluated, last_event_id)
    select p_dimension, p_reservation, p_place ->> 'runStepId', p_place ->> 'executionAttemptId',
        p_place ->> 'chargeDimensionKey', p_settled, p_last_evaluated, f.finalization_committed_event_id
    from billing.finalization_fact as f
    where f.billing_reservation_id = p_reservation
    on conflict (settlement_dimension_id) do nothing;
    if not found then
        perform from billing.dimension_state as d where d.settlement_dimension_id = p_dimension;
        if not found then
            raise exception using errcode = 'OW002', message = 'the reservation is not finalized';
        end if;
    end if;
end $$;
