-- Purpose: what is current for chains, and the conflict under which chain or route stand, in the order asked (REF-30).
-- Locks: none.
-- Errors: none; a chain without a statement gives a row of nulls.
create or replace function gateway.validation_availability_v1(
    p_attempts text[], p_deployments text[], p_kinds text[], p_dimensions text[]
)
returns table (snapshot bytea, evidence_conflict bytea, binding_conflict bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.document, f.document, b.document
    from unnest(p_attempts, p_deployments, p_kinds, p_dimensions) with ordinality
        as i (attempt, deployment, kind, dimension, position)
    left join gateway.availability_pointer as p
        on (p.execution_attempt_id, p.gateway_deployment_id, p.provider_evidence_kind, p.evidence_dimension_key)
            = (i.attempt, i.deployment, i.kind, i.dimension)
    left join gateway.availability_snapshot as s using (gateway_evidence_availability_snapshot_ref)
    left join gateway.evidence_conflict as c on c.repaired_at is null
        and (c.execution_attempt_id, c.gateway_deployment_id, c.provider_evidence_kind, c.evidence_dimension_key)
            = (i.attempt, i.deployment, i.kind, i.dimension)
    left join gateway.evidence_conflict_fact as f
        on f.gateway_evidence_conflict_fact_ref = c.gateway_evidence_conflict_fact_ref
    left join gateway.binding_conflict as b on b.repaired_at is null
        and (b.execution_attempt_id, b.gateway_deployment_id) = (i.attempt, i.deployment)
    order by i.position;
$$;
