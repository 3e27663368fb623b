-- Purpose: one late case by its exact reference, with the envelope that requested it and the state of its dimension.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_late_case_v1(p_version text, p_case_ref text)
returns table (state text, request_envelope bytea, state_revision bigint, exposure_amount text, last_event_id uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select c.state, a.envelope, d.state_revision, operations.query_amount(d.exposure_amount), d.last_event_id
    from operations.late_case as c
    left join operations.accepted_events as a on a.event_id = c.request_event_id
    left join operations.settlement_dimension as d
        on d.projection_version = c.projection_version and d.settlement_dimension_id = c.settlement_dimension_id
    where c.projection_version = p_version and c.case_ref = p_case_ref
$$;
