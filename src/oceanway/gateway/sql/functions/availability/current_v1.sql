-- Purpose: the current statement of chains as the predecessor of the next one, in the order asked.
-- Locks: none.
-- Errors: none; a chain without a statement gives a row of nulls.
create or replace function gateway.availability_current_v1(
    p_attempts text[], p_deployments text[], p_kinds text[], p_dimensions text[]
)
returns table (
    ref text, schema_version text, digest_algorithm_version text, digest text, state_version bigint
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.gateway_evidence_availability_snapshot_ref,
        d.value ->> 'gatewayEvidenceAvailabilitySnapshotSchemaVersion',
        d.value ->> 'gatewayEvidenceAvailabilitySnapshotDigestAlgorithmVersion', s.digest, s.state_version
    from unnest(p_attempts, p_deployments, p_kinds, p_dimensions) with ordinality
        as i (attempt, deployment, kind, dimension, position)
    left join gateway.availability_pointer as p
        on (p.execution_attempt_id, p.gateway_deployment_id, p.provider_evidence_kind, p.evidence_dimension_key)
            = (i.attempt, i.deployment, i.kind, i.dimension)
    left join gateway.availability_snapshot as s using (gateway_evidence_availability_snapshot_ref)
    left join lateral (select convert_from(s.document, 'UTF8')::jsonb) as d (value) on s.document is not null
    order by i.position;
$$;
