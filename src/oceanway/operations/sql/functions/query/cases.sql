-- Purpose: the cases of one operation: of its finalization with waiting successors, and of late settlements.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_cases(p_version text, p_operation_id text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'finalization', (select coalesce(jsonb_agg(jsonb_build_object('caseRef', q.case_ref, 'generation', q.generation,
                'state', coalesce(k.state, 'pending_successor'), 'requestEventId', q.event_id,
                'resolutionEventId', k.resolution_event_id, 'resolutionFactRef', k.resolution_fact_ref,
                'resolutionFactDigest', k.resolution_fact_digest)
            order by q.fence_id, q.generation), '[]')
            from operations.finalization_case_request as q
            left join operations.finalization_case as k
                on k.projection_version = q.projection_version and k.fence_id = q.fence_id and k.generation = q.generation
            where q.operation_id = p_operation_id and q.projection_version = p_version),
        'lateSettlement', (select coalesce(jsonb_agg(jsonb_build_object('caseRef', c.case_ref, 'state', c.state,
                'settlementDimensionId', c.settlement_dimension_id, 'openedRevision', c.opened_revision,
                'exposureAmount', operations.query_amount(c.exposure_amount), 'resolvedRevision', c.resolved_revision,
                'resolutionKind', c.resolution_kind, 'requestEventId', c.request_event_id,
                'resolutionEventId', c.resolution_event_id, 'effectEventId', c.effect_event_id)
            order by c.settlement_dimension_id, coalesce(c.opened_revision, c.resolved_revision)), '[]')
            from operations.late_case as c
            where c.operation_id = p_operation_id and c.projection_version = p_version))
$$;
