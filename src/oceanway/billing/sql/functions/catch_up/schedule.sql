-- Purpose: makes the next generation of a dimension's catch-up: the fence is created or reopened, and the work before it is
--   superseded, with a Finish if it was started (CAT-05, AMB-46). The same work again changes nothing.
-- Locks: the catch-up fence.
-- Errors: OW001 the generation has another work; OW002 the fence moved on; OW003 the work is not the next one of the fence;
--   OW009 the Finish of the superseded work is missing.
create or replace function billing.catch_up_schedule(p_work bytea, p_expected_revision bigint, p_superseded bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_work constant jsonb := convert_from(p_work, 'UTF8')::jsonb;
    v_ref constant text := v_work ->> 'billingSettlementCatchUpWorkRef';
    v_dimension constant text := v_work ->> 'settlementDimensionId';
    v_generation constant bigint := (v_work ->> 'workGeneration')::bigint;
    v_fence billing.catch_up_fence;
begin
    insert into billing.catch_up_fence (settlement_dimension_id, billing_reservation_id)
    values (v_dimension, v_work ->> 'billingReservationId')
    on conflict (settlement_dimension_id) do nothing;
    if found and p_expected_revision <> 0 then
        raise exception using errcode = 'OW002', message = 'the catch-up fence has moved on';
    end if;
    select * into v_fence from billing.catch_up_fence as c
    where c.settlement_dimension_id = v_dimension for no key update;
    if v_fence.latest_work_generation = v_generation then
        perform from billing.catch_up_work as w
        where w.billing_settlement_catch_up_work_ref = v_ref
          and w.digest = v_work ->> 'billingSettlementCatchUpWorkDigest';
        if not found then
            raise exception using errcode = 'OW001', message = 'this generation has another work';
        end if;
        return;
    end if;
    if v_fence.fence_revision <> greatest(p_expected_revision, 1) then
        raise exception using errcode = 'OW002', message = 'the catch-up fence has moved on';
    end if;
    if v_generation is distinct from v_fence.latest_work_generation + 1
        or v_work ->> 'billingReservationId' is distinct from v_fence.billing_reservation_id then
        raise exception using errcode = 'OW003', message = 'the work is not the next one of this fence';
    end if;
    perform billing.catch_up_supersede(v_fence.active_work_ref, v_generation, p_superseded);
    insert into billing.catch_up_work (billing_settlement_catch_up_work_ref, billing_catch_up_validation_operation_id,
        settlement_dimension_id, work_generation, digest, document)
    values (v_ref, v_work ->> 'billingCatchUpValidationOperationId', v_dimension, v_generation,
        v_work ->> 'billingSettlementCatchUpWorkDigest', p_work);
    update billing.catch_up_fence as c
    set fence_revision = c.fence_revision + 1, latest_work_generation = v_generation, state = 'pending_verification',
        active_work_ref = v_ref, blocked_ref = null, validation_receipt_ref = null, available_at = clock_timestamp(),
        lease_owner = null, fencing_token = null, lease_expires_at = null, attempt_number = 0, retry_count = 0
    where c.settlement_dimension_id = v_dimension;
end $$;
