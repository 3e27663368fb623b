-- Purpose: enters one event of a finalization case and returns what is known of its fence: the identities, requests and
--   resolutions of every generation. The caller decides on them and writes with `case_write_v1` in this transaction.
-- Locks: advisory on the projection version.
-- Errors: OW001 another identity than an earlier event of this run; the event's case identity was never reserved so.
create or replace function operations.case_known_v1(p_version text, p_envelope bytea)
returns table (
    generation bigint, identity_document bytea, case_ref text, request_event_id uuid, resolution_event_id uuid,
    fact_ref text, fact_digest text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_payload constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb -> 'payload';
    v_fence constant text := v_payload ->> 'billingFinalizationFenceId';
begin
    perform operations.event_enter(p_version, v_payload);
    perform from operations.case_identity_reservation as r
    where r.billing_finalization_fence_id = v_fence
      and r.reconciliation_generation = (v_payload ->> 'reconciliationGeneration')::bigint
      and r.identity_ref = v_payload ->> 'finalizationCaseIdentityReservationRef'
      and r.identity_digest = v_payload ->> 'finalizationCaseIdentityReservationDigest'
      and r.subject = operations.identity_subject(v_payload);
    if not found then
        raise exception using errcode = 'OW001', message = 'the case identity of this event was never reserved so';
    end if;
    return query
    select r.reconciliation_generation, r.document, coalesce(q.case_ref, s.case_ref), q.event_id, s.event_id, s.fact_ref,
        s.fact_digest
    from operations.case_identity_reservation as r
    left join operations.finalization_case_request as q
        on q.projection_version = p_version and q.fence_id = v_fence and q.generation = r.reconciliation_generation
    left join operations.finalization_case_resolution as s
        on s.projection_version = p_version and s.fence_id = v_fence and s.generation = r.reconciliation_generation
    where r.billing_finalization_fence_id = v_fence
    order by r.reconciliation_generation;
end $$;
