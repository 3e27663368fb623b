-- Purpose: applies the resolution of the case that the fence is in (TX-23, FIN-10): resolution watermark, and the next
--   generation with every watermark that accumulated meanwhile; the fence leaves the case.
-- Locks: the fence, which the caller has locked.
-- Errors: OW002 the fence moved on or is not in this case; OW003 as `finalization_fence_schedule_v1`; OW004 no such
--   resolution was applied.
create or replace function billing.coordinator_resolution_v1(p_expected_revision bigint, p_trigger bytea, p_work bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_trigger constant jsonb := convert_from(p_trigger, 'UTF8')::jsonb;
    v_mark constant jsonb := v_trigger -> 'resolutionWatermark';
    v_fact constant text := 'finalizationReconciliationResolutionApplied';
begin
    perform from billing.resolution_applied as r
    where r.finalization_reconciliation_resolution_applied_ref = v_mark ->> (v_fact || 'Ref')
      and r.digest = v_mark ->> (v_fact || 'Digest') and r.reconciliation_case_ref = v_mark ->> 'reconciliationCaseRef'
      and r.reconciliation_generation = (v_mark ->> 'reconciliationGeneration')::bigint;
    if not found then
        raise exception using errcode = 'OW004', message = 'no such resolution was applied';
    end if;
    update billing.finalization_fence as f set resolution_watermark = v_mark
    where f.billing_finalization_fence_id = v_trigger ->> 'billingFinalizationFenceId'
      and f.state = 'reconciliation_required'
      and f.reconciliation_generation = (v_mark ->> 'reconciliationGeneration')::bigint;
    if not found then
        raise exception using errcode = 'OW002', message = 'the fence is not in this case';
    end if;
    perform billing.finalization_fence_schedule_v1(p_expected_revision, p_trigger, p_work, null);
end $$;
