-- Purpose: the current snapshots of an attempt, with what a later one is compared with: quantity and decision.
-- Locks: none.
-- Errors: none.
create or replace function metering.settlement_pointers(p_attempt text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'snapshot', convert_from(s.document, 'UTF8')::jsonb, 'decision_state', d.state, 'reason_code', d.reason_code)
        order by p.charge_dimension_key), '[]')
    from metering.settlement_pointer as p
    join metering.settlement_input_snapshot as s using (settlement_input_snapshot_ref)
    join metering.eligibility_decision as d using (eligibility_decision_ref)
    where p.execution_attempt_id = p_attempt;
$$;
