-- Purpose: that a statement belongs to a bound attempt and continues its chain with the same manifest, binding and route
--   (REF-22, APP-16, APP-17), and that evidence or conflict fact are the ones it names.
-- Locks: none.
-- Errors: OW002 the current statement of the chain is another one; OW003 something differs; OW004 the attempt is not bound.
create or replace function gateway.availability_check(p_snapshot jsonb, p_evidence bytea, p_conflict bytea)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_binding jsonb;
    v_before jsonb;
    v_predecessor jsonb := '{"state": "none"}';
    v_state constant text := p_snapshot #>> '{availability,state}';
begin
    select convert_from(b.document, 'UTF8')::jsonb into v_binding
    from gateway.route_binding as b
    where (b.execution_attempt_id, b.gateway_deployment_id)
        = (p_snapshot ->> 'executionAttemptId', p_snapshot ->> 'gatewayDeploymentId');
    if not found then
        raise exception using errcode = 'OW004', message = 'the attempt is not bound to the deployment';
    end if;
    if exists (
        select from unnest(array['attemptRouteBindingRef', 'attemptRouteBindingSchemaVersion',
            'attemptRouteBindingDigestAlgorithmVersion', 'attemptRouteBindingDigest', 'gatewayRouteSnapshotRef',
            'gatewayRouteSnapshotSchemaVersion', 'gatewayRouteSnapshotDigestAlgorithmVersion',
            'gatewayRouteSnapshotDigest']) as f (field)
        where p_snapshot -> f.field is distinct from v_binding -> f.field) then
        raise exception using errcode = 'OW003', message = 'the statement names another binding or route';
    end if;
    if (p_evidence is not null, p_conflict is not null) is distinct from (v_state = 'available', v_state = 'conflicting')
        or exists (
            select from jsonb_object_keys(p_snapshot -> 'availability') as f (field)
            where f.field not in ('state', 'stateReasonCode')
              and p_snapshot -> 'availability' -> f.field
                is distinct from convert_from(coalesce(p_evidence, p_conflict), 'UTF8')::jsonb -> f.field) then
        raise exception using errcode = 'OW003', message = 'the statement names other evidence';
    end if;
    select convert_from(s.document, 'UTF8')::jsonb into v_before
    from gateway.availability_pointer as p
    join gateway.availability_snapshot as s using (gateway_evidence_availability_snapshot_ref)
    where (p.execution_attempt_id, p.gateway_deployment_id, p.provider_evidence_kind, p.evidence_dimension_key)
        = (p_snapshot ->> 'executionAttemptId', p_snapshot ->> 'gatewayDeploymentId',
            p_snapshot ->> 'providerEvidenceKind', p_snapshot ->> 'evidenceDimensionKey');
    if found then
        select jsonb_object_agg(f.field, v_before -> f.field) || '{"state": "present"}' into v_predecessor
        from unnest(array['gatewayEvidenceAvailabilitySnapshotRef', 'gatewayEvidenceAvailabilitySnapshotSchemaVersion',
            'gatewayEvidenceAvailabilitySnapshotDigestAlgorithmVersion', 'gatewayEvidenceAvailabilitySnapshotDigest',
            'gatewayEvidenceAvailabilitySnapshotStateVersion']) as f (field);
        if (v_before -> 'attemptExecutionManifestRef', v_before -> 'attemptExecutionManifestDigest')
            is distinct from (p_snapshot -> 'attemptExecutionManifestRef', p_snapshot -> 'attemptExecutionManifestDigest')
        then
            raise exception using errcode = 'OW003', message = 'the chain belongs to another attempt manifest';
        end if;
    end if;
    if v_predecessor is distinct from p_snapshot -> 'predecessor' then
        raise exception using errcode = 'OW002', message = 'the current statement of the chain is another one';
    end if;
end $$;
