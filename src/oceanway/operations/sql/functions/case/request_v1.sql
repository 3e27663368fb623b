-- Purpose: a case request of one generation: the request, the owner's answer it was verified with, a pending successor
--   for a later generation, and the cases that follow from what is known now (TX-32 to TX-34, CASE-07 to CASE-14).
-- Locks: none of its own; `case_known_v1` has entered the event in this transaction.
-- Errors: OW001 another request of this generation; 23505 a second open case.
create or replace function operations.case_request_v1(
    p_version text, p_envelope bytea, p_successor bytea, p_receipt_ref text, p_cases jsonb, p_read jsonb,
    p_read_arguments bytea, p_read_answer bytea
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_fence constant text := v_payload ->> 'billingFinalizationFenceId';
    v_generation constant bigint := (v_payload ->> 'reconciliationGeneration')::bigint;
    v_before constant jsonb := convert_from(p_successor, 'UTF8')::jsonb;
begin
    insert into operations.finalization_case_request (projection_version, fence_id, generation, operation_id, case_ref,
        event_id, identity_ref, identity_digest)
    values (p_version, v_fence, v_generation, v_payload ->> 'runId', v_payload ->> 'reconciliationCaseRef',
        (v_event ->> 'eventId')::uuid, v_payload ->> 'finalizationCaseIdentityReservationRef',
        v_payload ->> 'finalizationCaseIdentityReservationDigest')
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = 'this generation has a request already';
    end if;
    perform operations.event_keep(p_version, v_event, p_envelope,
        jsonb_build_object('caseRef', v_payload ->> 'reconciliationCaseRef', 'generation', v_generation,
            'reason', v_payload -> 'reason'),
        array['fence', 'case'], array[v_fence, v_payload ->> 'reconciliationCaseRef']);
    perform operations.case_remember(p_read, p_read_arguments, p_read_answer);
    if p_successor is not null then
        insert into operations.pending_case_successors_v1 (projection_version, fence_id, generation,
            successor_identity_ref, successor_identity_digest, predecessor_identity_ref, predecessor_identity_digest,
            case_requested_envelope, case_requested_envelope_sha256, case_request_operation_id,
            billing_finalization_operation_id, receipt_ref, document, state)
        values (p_version, v_fence, v_generation, v_payload ->> 'finalizationCaseIdentityReservationRef',
            v_payload ->> 'finalizationCaseIdentityReservationDigest',
            v_before ->> 'predecessorFinalizationCaseIdentityReservationRef',
            v_before ->> 'predecessorFinalizationCaseIdentityReservationDigest',
            p_envelope, sha256(p_envelope), v_payload ->> 'caseRequestOperationId',
            v_payload ->> 'billingFinalizationOperationId', p_receipt_ref, p_successor, 'pending');
    end if;
    perform operations.case_materialise(p_version, v_fence, p_cases);
end $$;
