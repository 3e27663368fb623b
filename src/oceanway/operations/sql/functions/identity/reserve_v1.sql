-- Purpose: reserves the identity of one case generation of a fence, or returns the first one (TX-25, CASE-01, CASE-12).
--   The document is FinalizationReconciliationCaseIdentityReservation@1; who asks, and for which work, is nowhere in it.
-- Locks: an advisory lock on the reservation's finalization; the primary key.
-- Errors: OW003 a generation and its predecessor do not fit each other.
-- Returns: result `reserved`, `existing` or `conflicting`, and the stored document unless conflicting.
create or replace function operations.identity_reserve_v1(p_document bytea)
returns table (result text, document bytea)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_new constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
    v_fence constant text := v_new ->> 'billingFinalizationFenceId';
    v_generation constant bigint := (v_new ->> 'reconciliationGeneration')::bigint;
    v_before constant jsonb := v_new -> 'predecessor';
    v_digest constant text := v_new ->> 'finalizationCaseIdentityReservationDigest';
    v_subject constant jsonb := operations.identity_subject(v_new);
    v_known operations.case_identity_reservation;
begin
    if (v_generation = 1) <> (v_before ->> 'state' = 'none')
        or (v_generation > 1 and (v_before ->> 'reconciliationGeneration')::bigint is distinct from v_generation - 1) then
        raise exception using errcode = 'OW003', message = 'the first generation has no predecessor, a later one the last before it';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('operations/identity/' || (v_new ->> 'billingReservationId'), 0));
    select * into v_known from operations.case_identity_reservation as r
    where r.billing_finalization_fence_id = v_fence and r.reconciliation_generation = v_generation;
    if found then
        if v_known.identity_digest = v_digest then
            return query values ('existing', v_known.document);
        else
            return query values ('conflicting', null::bytea);
        end if;
        return;
    end if;
    perform from operations.case_identity_reservation as r
    where r.billing_reservation_id = v_new ->> 'billingReservationId' and r.subject <> v_subject;
    if found then
        return query values ('conflicting', null::bytea);
        return;
    end if;
    if v_generation > 1 then
        perform from operations.case_identity_reservation as r
        where r.billing_finalization_fence_id = v_fence and r.reconciliation_generation = v_generation - 1
          and r.subject = v_subject and r.identity_ref = v_before ->> 'finalizationCaseIdentityReservationRef'
          and r.identity_digest = v_before ->> 'finalizationCaseIdentityReservationDigest';
        if not found then
            return query values ('conflicting', null::bytea);
            return;
        end if;
    end if;
    insert into operations.case_identity_reservation (billing_finalization_fence_id, reconciliation_generation,
        identity_ref, identity_digest, billing_reservation_id, subject, document)
    values (v_fence, v_generation, v_new ->> 'finalizationCaseIdentityReservationRef', v_digest,
        v_new ->> 'billingReservationId', v_subject, p_document);
    return query values ('reserved', p_document);
end $$;
