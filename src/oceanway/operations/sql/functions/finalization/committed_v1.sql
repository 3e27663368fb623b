-- Purpose: a finalization of a run: its amounts, the dimensions it settled, and the edge to first transitions that came
--   before it (CASE-31, AMB-50).
-- Locks: advisory on the projection version.
-- Errors: OW001 another identity, a second finalization, or a first transition that names another cause.
create or replace function operations.finalization_committed_v1(p_version text, p_envelope bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_operation_id constant text := operations.event_enter(p_version, v_payload);
    v_event_id constant uuid := (v_event ->> 'eventId')::uuid;
    v_dimensions text[];
    v_attempts text[];
begin
    perform from operations.settlement_dimension as d
    where d.operation_id = v_operation_id and d.projection_version = p_version and d.first_causation_id <> v_event_id;
    if found then
        raise exception using errcode = 'OW001', message = 'a first transition of this run names another cause';
    end if;
    insert into operations.finalization (projection_version, operation_id, event_id, billing_finalization_fence_id,
        finalization_fence_revision, settled_amount, released_amount, currency)
    values (p_version, v_operation_id, v_event_id, v_payload ->> 'billingFinalizationFenceId',
        (v_payload ->> 'finalizationFenceRevision')::bigint, (v_payload ->> 'settledAmount')::numeric,
        (v_payload ->> 'releasedAmount')::numeric, v_payload ->> 'currency')
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = 'this run was finalized by another event';
    end if;
    with settled as (
        insert into operations.settlement_dimension as d (projection_version, settlement_dimension_id, operation_id,
            run_step_id, execution_attempt_id, charge_dimension_key, finalized_amount)
        select p_version, g.item ->> 'settlementDimensionId', v_operation_id, g.item ->> 'runStepId',
            g.item ->> 'executionAttemptId', g.item ->> 'chargeDimensionKey', (g.item ->> 'amount')::numeric
        from jsonb_array_elements(v_payload -> 'dimensions') as g (item)
        on conflict (projection_version, settlement_dimension_id) do update set finalized_amount = excluded.finalized_amount
        returning d.settlement_dimension_id, d.execution_attempt_id)
    select coalesce(array_agg(s.settlement_dimension_id), '{}'), coalesce(array_agg(distinct s.execution_attempt_id), '{}')
    into v_dimensions, v_attempts from settled as s;
    perform operations.event_keep(p_version, v_event, p_envelope,
        jsonb_build_object('settledAmount', v_payload ->> 'settledAmount', 'releasedAmount', v_payload ->> 'releasedAmount',
            'currency', v_payload ->> 'currency', 'dimensions', cardinality(v_dimensions)),
        array['fence'] || array_fill('dimension'::text, array[cardinality(v_dimensions)])
            || array_fill('attempt'::text, array[cardinality(v_attempts)]),
        array[v_payload ->> 'billingFinalizationFenceId'] || v_dimensions || v_attempts);
end $$;
