-- Purpose: one finalization case by its exact reference, with the documents behind it: identity, request envelope and,
--   where it exists, the owner's decision that was verified. For the chain of decisions.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_case_v1(p_version text, p_case_ref text)
returns table (state text, identity_document bytea, request_envelope bytea, resolution_event_id uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select k.state, r.document, a.envelope, k.resolution_event_id
    from operations.finalization_case as k
    join operations.case_identity_reservation as r
        on r.billing_finalization_fence_id = k.fence_id and r.reconciliation_generation = k.generation
    join operations.accepted_events as a on a.event_id = k.request_event_id
    where k.projection_version = p_version and k.case_ref = p_case_ref
$$;
