-- Purpose: writes one statement about a chain: evidence or conflict fact if it has one, snapshot, pointer, and which event
--   announces it; the caller appends the event (TX-15, APP-16). The same statement again changes nothing.
-- Locks: the pointer of the chain.
-- Errors: OW001 evidence known with other content; OW002 the chain has another statement of this version, or is elsewhere;
--   OW003 something does not belong together; OW004 the attempt is not bound.
-- Returns: whether it is new.
create or replace function gateway.availability_write(
    p_snapshot bytea, p_evidence bytea, p_conflict bytea, p_event bytea
)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot constant jsonb := convert_from(p_snapshot, 'UTF8')::jsonb;
    v_event constant jsonb := convert_from(p_event, 'UTF8')::jsonb;
    v_ref constant text := v_snapshot ->> 'gatewayEvidenceAvailabilitySnapshotRef';
    v_version constant bigint := (v_snapshot ->> 'gatewayEvidenceAvailabilitySnapshotStateVersion')::bigint;
    v_digest text;
begin
    perform from gateway.availability_pointer as p
    where (p.execution_attempt_id, p.gateway_deployment_id, p.provider_evidence_kind, p.evidence_dimension_key)
        = (v_snapshot ->> 'executionAttemptId', v_snapshot ->> 'gatewayDeploymentId',
            v_snapshot ->> 'providerEvidenceKind', v_snapshot ->> 'evidenceDimensionKey')
    for no key update;
    select s.digest into v_digest
    from gateway.availability_snapshot as s where s.gateway_evidence_availability_snapshot_ref = v_ref;
    if found then
        if v_digest is distinct from v_snapshot ->> 'gatewayEvidenceAvailabilitySnapshotDigest' then
            raise exception using errcode = 'OW002', message = 'this version of the chain is another statement';
        end if;
        return false;
    end if;
    perform gateway.availability_check(v_snapshot, p_evidence, p_conflict);
    if p_evidence is not null then
        perform gateway.evidence_keep(v_snapshot, p_evidence);
    elsif p_conflict is not null then
        perform gateway.evidence_keep_conflict(p_conflict);
    end if;
    insert into gateway.availability_snapshot (gateway_evidence_availability_snapshot_ref, execution_attempt_id,
        gateway_deployment_id, provider_evidence_kind, evidence_dimension_key, state_version, predecessor_state_version,
        attempt_route_binding_ref, attempt_execution_manifest_ref, state, gateway_evidence_ref,
        gateway_evidence_conflict_fact_ref, digest, document, current_changed_event_id)
    values (v_ref, v_snapshot ->> 'executionAttemptId', v_snapshot ->> 'gatewayDeploymentId',
        v_snapshot ->> 'providerEvidenceKind', v_snapshot ->> 'evidenceDimensionKey', v_version,
        (v_snapshot #>> '{predecessor,gatewayEvidenceAvailabilitySnapshotStateVersion}')::bigint,
        v_snapshot ->> 'attemptRouteBindingRef', v_snapshot ->> 'attemptExecutionManifestRef',
        v_snapshot #>> '{availability,state}', v_snapshot #>> '{availability,gatewayEvidenceRef}',
        v_snapshot #>> '{availability,gatewayEvidenceConflictFactRef}',
        v_snapshot ->> 'gatewayEvidenceAvailabilitySnapshotDigest', p_snapshot, (v_event ->> 'eventId')::uuid)
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW002', message = 'the chain was begun by another statement';
    end if;
    insert into gateway.availability_pointer as p (execution_attempt_id, gateway_deployment_id, provider_evidence_kind,
        evidence_dimension_key, state_version, gateway_evidence_availability_snapshot_ref)
    values (v_snapshot ->> 'executionAttemptId', v_snapshot ->> 'gatewayDeploymentId',
        v_snapshot ->> 'providerEvidenceKind', v_snapshot ->> 'evidenceDimensionKey', v_version, v_ref)
    on conflict (execution_attempt_id, gateway_deployment_id, provider_evidence_kind, evidence_dimension_key) do update
    set state_version = excluded.state_version,
        gateway_evidence_availability_snapshot_ref = excluded.gateway_evidence_availability_snapshot_ref
    where p.state_version = excluded.state_version - 1;
    if not found then
        raise exception using errcode = 'OW002', message = 'the current statement of the chain is another one';
    end if;
    perform gateway.availability_bind_event(v_snapshot, p_event);
    return true;
end $$;
