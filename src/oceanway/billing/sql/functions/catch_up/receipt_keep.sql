-- Purpose: keeps metering's receipt that an input is current, once for its operation (REF-48).
-- Locks: the primary key.
-- Errors: OW001 the operation has another receipt; OW003 the receipt is for another input.
create or replace function billing.catch_up_receipt_keep(p_receipt bytea, p_dimension text, p_input jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_receipt constant jsonb := convert_from(p_receipt, 'UTF8')::jsonb;
    v_validated constant jsonb := v_receipt -> 'validatedQuint';
begin
    if (v_validated ->> 'ref', v_validated ->> 'schemaVersion', v_validated ->> 'digestAlgorithmVersion',
            v_validated ->> 'digest', v_validated -> 'stateVersion')
        is distinct from (p_input ->> 'settlementInputSnapshotRef', p_input ->> 'settlementInputSnapshotSchemaVersion',
            p_input ->> 'settlementInputSnapshotDigestAlgorithmVersion', p_input ->> 'settlementInputSnapshotDigest',
            p_input -> 'settlementInputStateVersion') then
        raise exception using errcode = 'OW003', message = 'the receipt says that another input is current';
    end if;
    insert into billing.validation_receipt (current_validation_receipt_ref, purpose, validation_operation_id,
        settlement_dimension_id, digest, document)
    values (v_receipt ->> 'currentValidationReceiptRef', v_receipt ->> 'purpose', v_receipt ->> 'validationOperationId',
        p_dimension, v_receipt ->> 'currentValidationReceiptDigest', p_receipt)
    on conflict do nothing;
    if not found then
        perform from billing.validation_receipt as r
        where r.current_validation_receipt_ref = v_receipt ->> 'currentValidationReceiptRef'
          and r.purpose = v_receipt ->> 'purpose'
          and r.validation_operation_id = v_receipt ->> 'validationOperationId'
          and r.digest = v_receipt ->> 'currentValidationReceiptDigest';
        if not found then
            raise exception using errcode = 'OW001', message = 'the operation has another receipt';
        end if;
    end if;
end $$;
