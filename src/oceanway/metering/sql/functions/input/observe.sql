-- Purpose: moves the watermark of an event's source to this event; the guard refuses what does not rise (AMB-36).
-- Locks: the watermark row.
-- Errors: 23001 the watermark is there already or higher.
create or replace function metering.input_observe(p_envelope bytea, p_attempt text)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    insert into metering.watermark (execution_attempt_id, source_kind, gateway_deployment_id, dimension_key, state_version,
        source_ref, source_schema_version, source_digest_algorithm_version, source_digest, source_event_id, envelope)
    select p_attempt, s.source_kind, s.gateway_deployment_id, s.dimension_key, s.state_version, s.source_ref,
        s.source_schema_version, s.source_digest_algorithm_version, s.source_digest, s.source_event_id, p_envelope
    from metering.input_source(convert_from(p_envelope, 'UTF8')::jsonb) as s
    on conflict (execution_attempt_id, source_kind, gateway_deployment_id, dimension_key) do update
    set state_version = excluded.state_version, source_ref = excluded.source_ref,
        source_schema_version = excluded.source_schema_version,
        source_digest_algorithm_version = excluded.source_digest_algorithm_version,
        source_digest = excluded.source_digest, source_event_id = excluded.source_event_id, envelope = excluded.envelope;
$$;
