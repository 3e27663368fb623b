-- Purpose: the applied events of one operation, in the order in which they occurred.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_timeline(p_version text, p_operation_id text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
            'eventId', t.event_id, 'eventType', t.event_type, 'producer', t.producer,
            'aggregateKind', t.aggregate_kind, 'aggregateId', t.aggregate_id, 'aggregateRevision', t.aggregate_revision,
            'causationId', t.causation_id, 'logicalOperationId', t.logical_operation_id,
            'occurredAt', operations.query_moment(t.occurred_at), 'appliedAt', operations.query_moment(t.applied_at),
            'eventEnvelopeSha256', encode(t.envelope_sha256, 'hex'), 'detail', t.detail))
        order by t.occurred_at, t.event_id), '[]')
    from operations.timeline_entry as t
    where t.operation_id = p_operation_id and t.projection_version = p_version
$$;
