-- Purpose: opens the catch-up of every dimension of a reservation, as part of its finalization (TX-10, CAT-08, AMB-28): a
--   state at revision 0 and a pending work each, also for dimensions that only the watermarks know. `p_dimension_states`:
--   {settlementDimensionId, runStepId, executionAttemptId, chargeDimensionKey, settledAmount, lastEvaluatedInput}.
-- Locks: the catch-up fences and states in order; the caller holds the finalization fence and the watermarks.
-- Errors: OW002 the reservation is not finalized, or a work's target is not the watermark of its dimension; OW009 a dimension
--   has no work or no state; those of catch_up_schedule.
create or replace function billing.catch_up_open_v1(p_reservation text, p_works bytea[], p_dimension_states jsonb)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
begin
    for v_item in
        select d.item ->> 'settlementDimensionId' as dimension, d.item, w.document, w.target, i.settlement_dimension_id,
            case when i.settlement_dimension_id is not null then billing.settlement_quint(i) end as watermark,
            c.fence_revision
        from jsonb_array_elements(p_dimension_states) as d (item)
        full join (
            select u.document, u.body ->> 'settlementDimensionId' as dimension, u.body #> '{basis,targetInput}' as target
            from (select x.document, convert_from(x.document, 'UTF8')::jsonb as body from unnest(p_works) as x (document)) as u
        ) as w on w.dimension = d.item ->> 'settlementDimensionId'
        full join (select n.* from billing.settlement_inbox as n where n.billing_reservation_id = p_reservation) as i
            on i.settlement_dimension_id = d.item ->> 'settlementDimensionId'
        left join billing.catch_up_fence as c on c.settlement_dimension_id = d.item ->> 'settlementDimensionId'
        order by d.item ->> 'settlementDimensionId'
    loop
        if v_item.dimension is null or v_item.document is null then
            raise exception using errcode = 'OW009', message = 'a dimension of the reservation has no catch-up';
        end if;
        if v_item.watermark is null or v_item.target is distinct from v_item.watermark then
            raise exception using errcode = 'OW002', message = 'the work does not aim at the watermark of its dimension';
        end if;
        perform billing.dimension_open(v_item.dimension, p_reservation, v_item.item,
            (v_item.item ->> 'settledAmount')::numeric, v_item.item -> 'lastEvaluatedInput');
        perform billing.catch_up_schedule(v_item.document, coalesce(v_item.fence_revision, 0), null);
    end loop;
end $$;
