-- Purpose: keeps validation receipts; one purpose and operation has one receipt for life (REF-30).
-- Locks: none beyond the rows.
-- Errors: OW001 another receipt of the same operation; the detail names the purpose.
create or replace function metering.validation_insert(p_documents bytea[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_document bytea;
    v_receipt jsonb;
begin
    foreach v_document in array p_documents loop
        v_receipt := convert_from(v_document, 'UTF8')::jsonb;
        insert into metering.validation_receipt (current_validation_receipt_ref, purpose, validation_operation_id,
            validated_ref, validated_digest, digest, document)
        values (v_receipt ->> 'currentValidationReceiptRef', v_receipt ->> 'purpose',
            v_receipt ->> 'validationOperationId', v_receipt #>> '{validatedQuint,ref}',
            v_receipt #>> '{validatedQuint,digest}', v_receipt ->> 'currentValidationReceiptDigest', v_document)
        on conflict do nothing;
        if not found and not exists (
            select from metering.validation_receipt as r
            where r.current_validation_receipt_ref = v_receipt ->> 'currentValidationReceiptRef'
              and r.purpose = v_receipt ->> 'purpose'
              and r.digest = v_receipt ->> 'currentValidationReceiptDigest') then
            raise exception using errcode = 'OW001', message = 'another receipt of this validation is there',
                detail = v_receipt ->> 'purpose';
        end if;
    end loop;
end $$;
