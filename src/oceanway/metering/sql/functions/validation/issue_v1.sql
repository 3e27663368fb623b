-- Purpose: issues receipts that settlement inputs are current, each only while it is; returns the first document of each
--   operation, or null where the input is not current any more, stands under a conflict, or the operation has already
--   confirmed another input (REF-48).
-- Locks: none beyond the rows.
-- Errors: none.
create or replace function metering.validation_issue_v1(p_dimensions text[], p_documents bytea[])
returns setof bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_receipt jsonb;
begin
    for v_position in 1..cardinality(p_documents) loop
        v_receipt := convert_from(p_documents[v_position], 'UTF8')::jsonb;
        if exists (
            select from metering.settlement_pointer as p
            where p.settlement_dimension_id = p_dimensions[v_position]
              and p.settlement_input_snapshot_ref = v_receipt #>> '{validatedQuint,ref}')
            and not exists (
                select from metering.settlement_input_conflict as c
                where c.settlement_dimension_id = p_dimensions[v_position] and c.repaired_at is null) then
            insert into metering.validation_receipt (current_validation_receipt_ref, purpose, validation_operation_id,
                validated_ref, validated_digest, digest, document)
            values (v_receipt ->> 'currentValidationReceiptRef', v_receipt ->> 'purpose',
                v_receipt ->> 'validationOperationId', v_receipt #>> '{validatedQuint,ref}',
                v_receipt #>> '{validatedQuint,digest}', v_receipt ->> 'currentValidationReceiptDigest',
                p_documents[v_position])
            on conflict do nothing;
            return next (
                select r.document from metering.validation_receipt as r
                where r.current_validation_receipt_ref = v_receipt ->> 'currentValidationReceiptRef'
                  and r.digest = v_receipt ->> 'currentValidationReceiptDigest');
        else
            return next null;
        end if;
    end loop;
end $$;
