-- Purpose: locks what one settlement input event may change and returns it, for a pure decision (CAT-02): the finalization
--   fence, null while the reservation is not bound; the dimension's watermark; its catch-up fence and state.
-- Locks: the finalization fence; the settlement watermarks of the reservation in order, then this dimension's; its catch-up
--   fence and state. While there is no watermark, an advisory lock on the dimension stands for it.
-- Errors: none.
create or replace function billing.settlement_lock_v1(p_reservation text, p_dimension text)
returns table (fence jsonb, watermark jsonb, catch_up jsonb)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_inbox billing.settlement_inbox;
    v_catch_up billing.catch_up_fence;
    v_dimension billing.dimension_state;
begin
    select l.state into fence from billing.finalization_fence_lock_v1(array[p_reservation]) as l;
    select * into v_inbox from billing.settlement_inbox as i
    where i.settlement_dimension_id = p_dimension for no key update;
    if not found then
        perform pg_advisory_xact_lock(hashtextextended('billing.settlement_inbox ' || p_dimension, 0));
        select * into v_inbox from billing.settlement_inbox as i
        where i.settlement_dimension_id = p_dimension for no key update;
    end if;
    if v_inbox.settlement_dimension_id is not null then
        watermark := billing.settlement_quint(v_inbox) || jsonb_build_object('inboxRevision', v_inbox.inbox_revision,
            'billingReservationId', v_inbox.billing_reservation_id, 'billingAccountId', v_inbox.billing_account_id,
            'runId', v_inbox.run_id, 'runStepId', v_inbox.run_step_id,
            'executionAttemptId', v_inbox.execution_attempt_id, 'chargeDimensionKey', v_inbox.charge_dimension_key,
            'settlementEconomicIdentity', v_inbox.settlement_economic_identity);
    end if;
    select * into v_catch_up from billing.catch_up_fence as c
    where c.settlement_dimension_id = p_dimension for no key update;
    if fence ->> 'state' = 'finalized' then
        select * into v_dimension from billing.dimension_state as d
        where d.settlement_dimension_id = p_dimension for no key update;
        catch_up := jsonb_build_object(
            'fenceRevision', coalesce(v_catch_up.fence_revision, 0),
            'latestWorkGeneration', coalesce(v_catch_up.latest_work_generation, 0),
            'stateRevision', coalesce(v_dimension.state_revision, 0),
            'lastEvaluatedInput', coalesce(v_dimension.last_evaluated, '{"state": "none"}'),
            'startedWork', (
                select jsonb_build_object('work', convert_from(w.document, 'UTF8')::jsonb,
                    'attemptNumber', s.attempt_number, 'fencingToken', s.fencing_token::text)
                from billing.catch_up_work as w
                join billing.catch_up_work_start as s using (billing_settlement_catch_up_work_ref)
                where w.billing_settlement_catch_up_work_ref = v_catch_up.active_work_ref
                order by s.attempt_number desc limit 1));
    end if;
    return next;
end $$;
