-- Purpose: applies the only closure event of a run (TX-22, FIN-02): closure watermark with the receipt that is committed in
--   this transaction, and the next generation.
-- Locks: the fence, which the caller has locked.
-- Errors: OW002 the fence moved on; OW003 as `finalization_fence_schedule_v1`; OW005 a closure event was applied.
create or replace function billing.coordinator_closure_v1(
    p_expected_revision bigint, p_trigger bytea, p_work bytea, p_superseded bytea, p_receipt jsonb
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_trigger constant jsonb := convert_from(p_trigger, 'UTF8')::jsonb;
begin
    if not coalesce(v_trigger #>> '{closureWatermark,state}' = 'applied' and jsonb_typeof(p_receipt) = 'object', false) then
        raise exception using errcode = 'OW003', message = 'the trigger holds no closure watermark, or there is no receipt';
    end if;
    update billing.finalization_fence as f
    set closure_watermark = v_trigger -> 'closureWatermark', coordinator_receipt = p_receipt
    where f.billing_finalization_fence_id = v_trigger ->> 'billingFinalizationFenceId'
      and f.closure_watermark ->> 'state' = 'none';
    if not found then
        raise exception using errcode = 'OW005', message = 'a closure event was applied to this fence';
    end if;
    perform billing.finalization_fence_schedule_v1(p_expected_revision, p_trigger, p_work, p_superseded);
end $$;
