-- Purpose: what this database's own outbox knows about the deliveries of an operation's events; other producers' runtime
--   belongs to them and is not shown (OPS-15 to OPS-18).
-- Locks: none.
-- Errors: none.
create or replace function operations.query_runtime(p_version text, p_operation_id text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('eventId', d.event_id, 'destination', d.destination,
            'status', d.status, 'attemptCount', d.attempt_count, 'lastErrorCode', d.last_error_code,
            'deliveredAt', operations.query_moment(d.delivered_at)))
        order by d.event_id, d.destination), '[]')
    from operations.timeline_entry as t
    join seapost.outbox_deliveries as d on d.event_id = t.event_id
    where t.operation_id = p_operation_id and t.projection_version = p_version and t.producer = 'core'
$$;
