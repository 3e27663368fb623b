-- Purpose: that an envelope announces exactly this statement, at its state version; it becomes the only one that does.
-- Locks: the primary key of the event's source.
-- Errors: OW001 the statement has an event; OW003 the envelope is about something else.
create or replace function gateway.availability_bind_event(p_snapshot jsonb, p_event bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_event, 'UTF8')::jsonb;
begin
    if v_event #> '{aggregate,revision}' is distinct from p_snapshot -> 'gatewayEvidenceAvailabilitySnapshotStateVersion'
        or exists (
            select from unnest(array['Ref', 'SchemaVersion', 'DigestAlgorithmVersion', 'Digest', 'StateVersion']) as f (field)
            where v_event -> 'payload' -> ('currentAvailability' || f.field)
                is distinct from p_snapshot -> ('gatewayEvidenceAvailabilitySnapshot' || f.field)) then
        raise exception using errcode = 'OW003', message = 'the event announces another statement';
    end if;
    perform gateway.event_bind(p_event, 'gateway.evidence-availability.current-changed@1',
        p_snapshot ->> 'gatewayEvidenceAvailabilitySnapshotRef', p_snapshot,
        array['executionAttemptId', 'gatewayDeploymentId', 'providerEvidenceKind', 'evidenceDimensionKey',
            'attemptExecutionManifestRef', 'attemptExecutionManifestSchemaVersion',
            'attemptExecutionManifestDigestAlgorithmVersion', 'attemptExecutionManifestDigest', 'attemptRouteBindingRef',
            'attemptRouteBindingSchemaVersion', 'attemptRouteBindingDigestAlgorithmVersion', 'attemptRouteBindingDigest',
            'gatewayRouteSnapshotRef', 'gatewayRouteSnapshotSchemaVersion', 'gatewayRouteSnapshotDigestAlgorithmVersion',
            'gatewayRouteSnapshotDigest']);
end $$;
