-- Purpose: writes what an evaluated work came to, in one transaction (TX-11, TX-30, APP-08..10, CAT-19, CAT-21): with a
--   change, the transition, its consumption and exposure, every booking, the audit and one or two events; in any case the
--   input as evaluated, the Finish and the successor work that verifies it. The same Finish again returns the first one.
-- Locks: the watermark of the dimension, its catch-up fence and state; the reservation and the account.
-- Errors: OW001 the operation or the fact exists with other content; OW002 lease, watermark, revision or predecessor has moved
--   on; OW003 documents that do not belong together, or a receipt of another purpose; OW008 what the account covers changed;
--   OW009 an event is missing.
-- Returns: the stored Finish.
create or replace function billing.transition_commit_v1(
    p_finish bytea, p_successor bytea, p_receipt bytea, p_transition bytea, p_consumption bytea, p_exposure bytea,
    p_envelopes bytea[], p_fencing_token bigint, p_expected_revision bigint, p_expected_state_revision bigint
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_outcome constant jsonb := v_finish -> 'outcome';
    v_successor constant jsonb := convert_from(p_successor, 'UTF8')::jsonb;
    v_receipt constant jsonb := convert_from(p_receipt, 'UTF8')::jsonb;
    v_work_ref constant text := v_finish ->> 'billingSettlementCatchUpWorkRef';
    v_state constant text := case when p_transition is null then 'already_evaluated' else 'transition_applied' end;
    v_work jsonb;
    v_target jsonb;
    v_first bytea;
begin
    select f.document into v_first from billing.catch_up_work_finish as f
    where f.billing_settlement_catch_up_work_ref = v_work_ref
      and f.digest = v_finish ->> 'billingSettlementCatchUpWorkAttemptFinishedDigest';
    if found then
        return v_first;
    end if;
    if not billing.catch_up_is_held(v_work_ref, p_fencing_token, p_expected_revision) then
        raise exception using errcode = 'OW002', message = 'the lease, the work, the revision or the watermark has moved on';
    end if;
    select convert_from(w.document, 'UTF8')::jsonb into v_work from billing.catch_up_work as w
    where w.billing_settlement_catch_up_work_ref = v_work_ref;
    v_target := v_work #> '{basis,targetInput}';
    if (v_outcome ->> 'state', v_receipt ->> 'purpose', v_successor ->> 'settlementDimensionId',
            v_successor #> '{basis,targetInput}', v_successor #> '{basis,lastEvaluatedInput}',
            v_outcome -> 'successorWorkGeneration', v_outcome -> 'successorBillingCatchUpValidationOperationId',
            v_outcome -> 'successorBillingSettlementCatchUpWorkRef',
            v_outcome -> 'successorBillingSettlementCatchUpWorkDigest')
        is distinct from (v_state, 'post_finalization_transition', v_work ->> 'settlementDimensionId',
            v_target, v_target || '{"state": "present"}',
            v_successor -> 'workGeneration', v_successor -> 'billingCatchUpValidationOperationId',
            v_successor -> 'billingSettlementCatchUpWorkRef', v_successor -> 'billingSettlementCatchUpWorkDigest')
        or not v_outcome -> 'resultPointer' @> v_target then
        raise exception using errcode = 'OW003', message = 'Finish, receipt, work and successor do not belong together';
    end if;
    perform billing.catch_up_receipt_keep(p_receipt, v_work ->> 'settlementDimensionId', v_target);
    if p_transition is not null then
        perform billing.transition_write(p_transition, p_consumption, p_exposure, p_envelopes,
            v_receipt, v_target, p_expected_state_revision);
    end if;
    update billing.dimension_state as d set last_evaluated = v_target || '{"state": "present"}'
    where d.settlement_dimension_id = v_work ->> 'settlementDimensionId'
      and d.state_revision = (v_successor #>> '{basis,dimensionStateRevision}')::bigint
      and d.state_revision = p_expected_state_revision + case when p_transition is null then 0 else 1 end;
    if not found then
        raise exception using errcode = 'OW002', message = 'the dimension has moved on';
    end if;
    perform billing.catch_up_finish_write(p_finish);
    perform billing.catch_up_schedule(p_successor, p_expected_revision, null);
    return p_finish;
end $$;
