-- Purpose: what every applied event leaves beside its own effect: its line in the timeline, its exact identifiers, and
--   the canonical bytes of another producer's event as received evidence (OPS-05, AMB-39).
-- Locks: none of its own; the caller has entered the event.
-- Errors: OW001 other bytes were accepted under this event identifier.
create or replace function operations.event_keep(
    p_version text, p_event jsonb, p_envelope bytea, p_detail jsonb, p_kinds text[], p_values text[]
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event_id constant uuid := (p_event ->> 'eventId')::uuid;
    v_operation_id constant text := p_event #>> '{payload,runId}';
    v_digest constant bytea := sha256(p_envelope);
begin
    insert into operations.timeline_entry (projection_version, event_id, operation_id, event_type, producer,
        aggregate_kind, aggregate_id, aggregate_revision, causation_id, logical_operation_id, occurred_at,
        envelope_sha256, detail)
    values (p_version, v_event_id, v_operation_id, p_event ->> 'eventType', p_event ->> 'producer',
        p_event #>> '{aggregate,kind}', p_event #>> '{aggregate,id}', (p_event #>> '{aggregate,revision}')::bigint,
        (p_event #>> '{correlation,causationId}')::uuid, p_event #>> '{correlation,operationId}',
        (p_event ->> 'occurredAt')::timestamptz, v_digest, jsonb_strip_nulls(p_detail));
    if p_event ->> 'producer' <> 'core' then
        insert into operations.accepted_events (event_id, producer, event_type, envelope, envelope_sha256)
        values (v_event_id, p_event ->> 'producer', p_event ->> 'eventType', p_envelope, v_digest)
        on conflict (event_id) do nothing;
        if not found then
            perform from operations.accepted_events as a where a.event_id = v_event_id and a.envelope_sha256 = v_digest;
            if not found then
                raise exception using errcode = 'OW001', message = 'other bytes were accepted under this event identifier';
            end if;
        end if;
    end if;
    insert into operations.exact_identifier_index (projection_version, kind, value_digest, operation_id)
    select p_version, g.kind, operations.query_value_digest(g.kind, g.value), v_operation_id
    from unnest(p_kinds, p_values) as g (kind, value)
    on conflict do nothing;
end $$;
