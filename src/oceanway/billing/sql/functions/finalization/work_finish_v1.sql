-- Purpose: ends a work that cannot go on yet: the closure event or a settlement input has not arrived (TX-24, FIN-03,
--   AMB-34). Nothing but the Finish and the fence's state is written; the event that is missing makes the next generation.
--   The same Finish again returns the first one.
-- Locks: the fence.
-- Errors: OW002 the lease, the work or the revision is no longer current; OW003 another outcome, or one that the trigger
--   contradicts.
-- Returns: the stored Finish.
create or replace function billing.finalization_work_finish_v1(
    p_finish bytea, p_fencing_token bigint, p_expected_revision bigint
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_work_ref constant text := v_finish ->> 'billingFinalizationWorkRef';
    v_outcome constant text := v_finish #>> '{outcome,state}';
    v_fence billing.finalization_fence;
    v_first bytea;
begin
    select w.document into v_first from billing.finalization_work_finish as w
    where w.billing_finalization_work_ref = v_work_ref
      and w.digest = v_finish ->> 'billingFinalizationWorkAttemptFinishedDigest';
    if found then
        return v_first;
    end if;
    v_fence := billing.finalization_hold(v_work_ref, p_fencing_token, p_expected_revision);
    if not coalesce(v_outcome = case v_fence.closure_watermark ->> 'state' when 'none' then 'closure_event_not_applied'
                                     else 'settlement_input_not_applied' end, false) then
        raise exception using errcode = 'OW003', message = 'the outcome does not fit the closure watermark';
    end if;
    perform billing.finalization_finish_write(p_finish);
    update billing.finalization_fence as f
    set state = case v_outcome when 'closure_event_not_applied' then 'waiting_for_closure'
                               else 'waiting_for_settlement_input' end,
        active_work_ref = null, lease_owner = null, fencing_token = null, lease_expires_at = null
    where f.billing_finalization_fence_id = v_fence.billing_finalization_fence_id;
    return p_finish;
end $$;
