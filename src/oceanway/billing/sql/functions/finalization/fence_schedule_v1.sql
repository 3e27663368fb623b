-- Purpose: makes the next generation of a finalization: the fence's revision and generation advance, the trigger freezes
--   every watermark so far, and the work before it is superseded (FIN-02, CAT-03, AMB-46). What was started and not
--   finished gets the Finish `superseded`; what nobody started has nothing to finish.
-- Locks: the fence, which the caller has locked before the settlement watermarks.
-- Errors: OW002 the fence moved on, is finalized, or is in a case that no resolution has ended; OW003 documents that do not
--   belong to the fence or to each other; OW009 the Finish of the superseded work is missing.
create or replace function billing.finalization_fence_schedule_v1(
    p_expected_revision bigint, p_trigger bytea, p_work bytea, p_superseded bytea
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_trigger constant jsonb := convert_from(p_trigger, 'UTF8')::jsonb;
    v_finish constant jsonb := convert_from(p_superseded, 'UTF8')::jsonb;
    v_fence billing.finalization_fence;
    v_started boolean;
begin
    select * into v_fence from billing.finalization_fence as f
    where f.billing_finalization_fence_id = v_trigger ->> 'billingFinalizationFenceId' for no key update;
    if not found or v_fence.fence_revision <> p_expected_revision or v_fence.state = 'finalized'
        or (v_fence.state = 'reconciliation_required' and v_fence.reconciliation_generation
            is distinct from (v_fence.resolution_watermark ->> 'reconciliationGeneration')::bigint) then
        raise exception using errcode = 'OW002', message = 'the finalization fence has moved on';
    end if;
    if ((v_trigger ->> 'finalizationFenceRevision')::bigint, (v_trigger ->> 'workGeneration')::bigint,
            v_trigger -> 'closureWatermark', v_trigger -> 'resolutionWatermark')
        is distinct from (v_fence.fence_revision + 1, v_fence.latest_work_generation + 1,
            v_fence.closure_watermark, v_fence.resolution_watermark) then
        raise exception using errcode = 'OW003', message = 'the trigger is not the next one of this fence';
    end if;
    if v_fence.active_work_ref is not null then
        select exists (select from billing.finalization_work_start as s
                       where s.billing_finalization_work_ref = v_fence.active_work_ref) into v_started;
        if v_started then
            if (v_finish ->> 'billingFinalizationWorkRef', v_finish #>> '{outcome,state}',
                    v_finish #> '{outcome,supersededByWorkGeneration}')
                is distinct from (v_fence.active_work_ref, 'superseded', v_trigger -> 'workGeneration') then
                raise exception using errcode = 'OW009', message = 'the Finish of the superseded work is missing';
            end if;
            perform billing.finalization_finish_write(p_superseded);
        end if;
    end if;
    update billing.finalization_fence as f
    set fence_revision = f.fence_revision + 1, latest_work_generation = f.latest_work_generation + 1, state = 'pending',
        active_work_ref = convert_from(p_work, 'UTF8')::jsonb ->> 'billingFinalizationWorkRef',
        available_at = clock_timestamp(), lease_owner = null, fencing_token = null, lease_expires_at = null,
        attempt_number = 0, retry_count = 0
    where f.billing_finalization_fence_id = v_fence.billing_finalization_fence_id;
    perform billing.finalization_work_write(p_trigger, p_work);
end $$;
