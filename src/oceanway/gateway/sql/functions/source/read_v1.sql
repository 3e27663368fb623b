-- Purpose: statements by reference with what they name and the event that announced them, and the conflict under which
--   chain or route stand, in the order asked (REF-25).
-- Locks: none.
-- Errors: none; an unknown reference gives a row of nulls.
create or replace function gateway.source_read_v1(p_refs text[])
returns table (
    snapshot bytea, evidence bytea, route_snapshot bytea, event_id uuid, event_envelope_sha256 text,
    evidence_conflict bytea, binding_conflict bytea
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select s.document, e.document, r.document, s.current_changed_event_id, v.event_envelope_sha256, f.document, b.document
    from unnest(p_refs) with ordinality as i (ref, position)
    left join gateway.availability_snapshot as s on s.gateway_evidence_availability_snapshot_ref = i.ref
    left join gateway.evidence as e on e.gateway_evidence_ref = s.gateway_evidence_ref
    left join gateway.route_binding as t on t.attempt_route_binding_ref = s.attempt_route_binding_ref
    left join gateway.route_snapshot as r on r.gateway_route_snapshot_ref = t.gateway_route_snapshot_ref
    left join gateway.event_source as v on v.event_id = s.current_changed_event_id
    left join gateway.evidence_conflict as c on c.repaired_at is null
        and (c.execution_attempt_id, c.gateway_deployment_id, c.provider_evidence_kind, c.evidence_dimension_key)
            = (s.execution_attempt_id, s.gateway_deployment_id, s.provider_evidence_kind, s.evidence_dimension_key)
    left join gateway.evidence_conflict_fact as f
        on f.gateway_evidence_conflict_fact_ref = c.gateway_evidence_conflict_fact_ref
    left join gateway.binding_conflict as b on b.repaired_at is null
        and (b.execution_attempt_id, b.gateway_deployment_id) = (s.execution_attempt_id, s.gateway_deployment_id)
    order by i.position;
$$;
