-- Purpose: blocks a work on an owner's conflict (TX-29, CAT-12, CAT-15): the conflict as metering states it, the Blocked of
--   this lease and the fence; the same work stays pending, its lease ends, and it is tried again after a growing pause. The
--   same Blocked again returns the first one.
-- Locks: the watermark of the dimension, then its catch-up fence.
-- Errors: OW001 the conflict exists with other content; OW002 the lease or the work has moved on; OW003 documents that do not
--   belong together.
-- Returns: the stored Blocked.
create or replace function billing.catch_up_block_v1(
    p_conflict bytea, p_blocked bytea, p_fencing_token bigint, p_expected_revision bigint, p_base interval, p_max interval
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_conflict constant jsonb := convert_from(p_conflict, 'UTF8')::jsonb;
    v_blocked constant jsonb := convert_from(p_blocked, 'UTF8')::jsonb;
    v_ref constant text := v_blocked ->> 'billingSettlementCatchUpWorkAttemptBlockedRef';
    v_digest constant text := v_blocked ->> 'billingSettlementCatchUpWorkAttemptBlockedDigest';
    v_work_ref constant text := v_blocked ->> 'billingSettlementCatchUpWorkRef';
    v_conflict_ref constant text := v_conflict ->> 'settlementInputConflictFactRef';
    v_work billing.catch_up_work;
    v_first bytea;
begin
    select b.document into v_first from billing.catch_up_work_blocked as b
    where b.billing_settlement_catch_up_work_attempt_blocked_ref = v_ref and b.digest = v_digest;
    if found then
        return v_first;
    end if;
    if not billing.catch_up_is_held(v_work_ref, p_fencing_token, p_expected_revision) then
        raise exception using errcode = 'OW002', message = 'the lease or the work has moved on';
    end if;
    select * into v_work from billing.catch_up_work as w where w.billing_settlement_catch_up_work_ref = v_work_ref;
    if (v_blocked #>> '{blockingCause,kind}', v_blocked #>> '{blockingCause,settlementInputConflictFactRef}',
            v_blocked #>> '{blockingCause,settlementInputConflictFactDigest}', v_blocked ->> 'fencingToken',
            v_blocked ->> 'billingCatchUpValidationOperationId', v_conflict ->> 'settlementDimensionId')
        is distinct from ('settlement_input_owner_conflict', v_conflict_ref,
            v_conflict ->> 'settlementInputConflictFactDigest', p_fencing_token::text,
            v_work.billing_catch_up_validation_operation_id, v_work.settlement_dimension_id) then
        raise exception using errcode = 'OW003', message = 'conflict, Blocked and work do not belong together';
    end if;
    insert into billing.settlement_input_conflict (settlement_input_conflict_fact_ref, settlement_dimension_id, digest,
        document)
    values (v_conflict_ref, v_work.settlement_dimension_id, v_conflict ->> 'settlementInputConflictFactDigest', p_conflict)
    on conflict (settlement_input_conflict_fact_ref) do nothing;
    if not found then
        perform from billing.settlement_input_conflict as x
        where x.settlement_input_conflict_fact_ref = v_conflict_ref
          and x.digest = v_conflict ->> 'settlementInputConflictFactDigest';
        if not found then
            raise exception using errcode = 'OW001', message = 'the conflict exists with other content';
        end if;
    end if;
    insert into billing.catch_up_work_blocked (billing_settlement_catch_up_work_attempt_blocked_ref,
        billing_settlement_catch_up_work_ref, attempt_number, settlement_input_conflict_fact_ref, digest, document)
    values (v_ref, v_work_ref, (v_blocked ->> 'attemptNumber')::integer, v_conflict_ref, v_digest, p_blocked);
    update billing.catch_up_fence as c
    set state = 'blocked_on_owner_conflict', blocked_ref = v_ref, lease_owner = null, fencing_token = null,
        lease_expires_at = null, retry_count = c.retry_count + 1,
        available_at = clock_timestamp() + least(p_base * power(2, least(c.retry_count, 20)), p_max)
    where c.settlement_dimension_id = v_work.settlement_dimension_id;
    return p_blocked;
end $$;
