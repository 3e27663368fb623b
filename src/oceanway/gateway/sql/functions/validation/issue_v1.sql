-- Purpose: keeps receipts that something was current; one purpose and operation has one receipt for life, and whoever asks
--   again gets the first (REF-30).
-- Locks: the primary keys in the order given.
-- Errors: OW001 another receipt of the same operation.
-- Returns: the stored documents in the order given.
create or replace function gateway.validation_issue_v1(p_documents bytea[])
returns setof bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
begin
    insert into gateway.validation_receipt (current_validation_receipt_ref, purpose, validation_operation_id, digest, document)
    select r.value ->> 'currentValidationReceiptRef', r.value ->> 'purpose', r.value ->> 'validationOperationId',
        r.value ->> 'currentValidationReceiptDigest', i.document
    from unnest(p_documents) as i (document)
    cross join lateral (select convert_from(i.document, 'UTF8')::jsonb) as r (value)
    order by 1
    on conflict do nothing;
    for v_item in
        select s.document, s.digest is not distinct from r.value ->> 'currentValidationReceiptDigest' as is_same
        from unnest(p_documents) with ordinality as i (document, position)
        cross join lateral (select convert_from(i.document, 'UTF8')::jsonb) as r (value)
        left join gateway.validation_receipt as s
            on s.current_validation_receipt_ref = r.value ->> 'currentValidationReceiptRef'
        order by i.position
    loop
        if not v_item.is_same then
            raise exception using errcode = 'OW001', message = 'another receipt of this validation is there';
        end if;
        return next v_item.document;
    end loop;
end $$;
