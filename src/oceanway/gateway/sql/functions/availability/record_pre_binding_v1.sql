-- Purpose: keeps what a deployment can report on a route before any attempt is bound to it. Not applicable to any attempt,
--   so there is no event, and none can follow (APP-17).
-- Locks: the primary key.
-- Errors: OW001 the snapshot is known with other content.
create or replace function gateway.availability_record_pre_binding_v1(
    p_snapshot text, p_deployment text, p_route text, p_kind text, p_dimension text, p_state text
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into gateway.pre_binding_snapshot (pre_binding_snapshot_id, gateway_deployment_id, route_id,
        provider_evidence_kind, evidence_dimension_key, state)
    values (p_snapshot, p_deployment, p_route, p_kind, p_dimension, p_state)
    on conflict do nothing;
    if not found and not exists (
        select from gateway.pre_binding_snapshot as s
        where s.pre_binding_snapshot_id = p_snapshot
          and (s.gateway_deployment_id, s.route_id, s.provider_evidence_kind, s.evidence_dimension_key, s.state)
            = (p_deployment, p_route, p_kind, p_dimension, p_state)) then
        raise exception using errcode = 'OW001', message = 'the pre-binding snapshot is known with other content';
    end if;
end $$;
