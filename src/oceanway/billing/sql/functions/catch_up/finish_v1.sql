-- Purpose: ends works whose dimension is caught up (TX-31, CAT-20): each with the current receipt that metering gave for this
--   work's own operation, for the input that was evaluated last, at an unchanged revision and watermark. A work that moved on
--   in the meantime is left alone. A Finish that is stored already counts as written.
-- Locks: the watermarks of the dimensions in order, then the catch-up fences in order.
-- Errors: OW003 arrays of different lengths, or a Finish, receipt and work that do not belong together; those of
--   catch_up_receipt_keep.
-- Returns: the works that ended.
create or replace function billing.catch_up_finish_v1(
    p_finishes bytea[], p_receipts bytea[], p_fencing_tokens bigint[], p_expected_revisions bigint[]
)
returns text[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
    v_ended text[] := '{}';
begin
    if array[cardinality(p_receipts), cardinality(p_fencing_tokens), cardinality(p_expected_revisions)]
        <> array_fill(cardinality(p_finishes), array[3]) then
        raise exception using errcode = 'OW003', message = 'every Finish has a receipt, a token and a revision';
    end if;
    perform billing.catch_up_lock(p_finishes);
    for v_item in
        select u.finish, u.receipt, u.token, u.revision, convert_from(u.finish, 'UTF8')::jsonb as body,
            convert_from(u.receipt, 'UTF8')::jsonb as validation, w.settlement_dimension_id as dimension,
            w.billing_settlement_catch_up_work_ref as work_ref, convert_from(w.document, 'UTF8')::jsonb as work,
            f.digest as finished
        from unnest(p_finishes, p_receipts, p_fencing_tokens, p_expected_revisions) as u (finish, receipt, token, revision)
        left join billing.catch_up_work as w on w.billing_settlement_catch_up_work_ref
            = convert_from(u.finish, 'UTF8')::jsonb ->> 'billingSettlementCatchUpWorkRef'
        left join billing.catch_up_work_finish as f
            on f.billing_settlement_catch_up_work_ref = w.billing_settlement_catch_up_work_ref
        order by w.settlement_dimension_id
    loop
        if v_item.finished = v_item.body ->> 'billingSettlementCatchUpWorkAttemptFinishedDigest' then
            v_ended := v_ended || v_item.work_ref;
            continue;
        end if;
        if (v_item.body #>> '{outcome,state}', v_item.validation ->> 'purpose',
                v_item.body #>> '{outcome,currentValidationReceiptRef}',
                v_item.body #>> '{outcome,currentValidationReceiptDigest}',
                v_item.validation ->> 'validationOperationId')
            is distinct from ('caught_up', 'billing_catch_up_fence',
                v_item.validation ->> 'currentValidationReceiptRef', v_item.validation ->> 'currentValidationReceiptDigest',
                v_item.work ->> 'billingCatchUpValidationOperationId') then
            raise exception using errcode = 'OW003', message = 'only the receipt of this work catches it up';
        end if;
        continue when not billing.catch_up_is_held(v_item.work_ref, v_item.token, v_item.revision);
        perform from billing.dimension_state as d
        where d.settlement_dimension_id = v_item.dimension
          and d.last_evaluated = v_item.work #> '{basis,targetInput}' || '{"state": "present"}';
        if not found then
            raise exception using errcode = 'OW003', message = 'what was not evaluated is not caught up';
        end if;
        perform billing.catch_up_receipt_keep(v_item.receipt, v_item.dimension, v_item.work #> '{basis,targetInput}');
        perform billing.catch_up_finish_write(v_item.finish);
        update billing.catch_up_fence as c
        set state = 'caught_up', fence_revision = c.fence_revision + 1, active_work_ref = null, blocked_ref = null,
            validation_receipt_ref = v_item.validation ->> 'currentValidationReceiptRef', lease_owner = null,
            fencing_token = null, lease_expires_at = null
        where c.settlement_dimension_id = v_item.dimension;
        v_ended := v_ended || v_item.work_ref;
    end loop;
    return v_ended;
end $$;
