-- Purpose: a late case was requested because an exposure was opened (CASE-26, CASE-27).
-- Locks: advisory on the projection version.
-- Errors: OW001 another identity, a second request, or the opening transition says otherwise.
create or replace function operations.late_requested_v1(p_version text, p_envelope bytea, p_case jsonb)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_operation_id constant text := operations.event_enter(p_version, v_event -> 'payload');
    v_event_id constant uuid := (v_event ->> 'eventId')::uuid;
begin
    insert into operations.late_case as c (projection_version, case_ref, operation_id, settlement_dimension_id, state,
        request_event_id, request_causation_id, opened_revision, exposure_amount)
    values (p_version, p_case ->> 'caseRef', v_operation_id, p_case ->> 'dimensionId', 'open', v_event_id,
        (v_event #>> '{correlation,causationId}')::uuid, (p_case ->> 'revision')::bigint, (p_case ->> 'exposureAmount')::numeric)
    on conflict (projection_version, case_ref) do update
    set request_event_id = excluded.request_event_id, request_causation_id = excluded.request_causation_id,
        opened_revision = excluded.opened_revision,
        exposure_amount = excluded.exposure_amount,
        state = operations.late_state(excluded.request_event_id, c.resolution_event_id, c.effect_event_id)
    where c.request_event_id is null
      and (c.operation_id, c.settlement_dimension_id) = (excluded.operation_id, excluded.settlement_dimension_id)
      and c.resolved_revision > excluded.opened_revision;
    if not found then
        raise exception using errcode = 'OW001', message = 'this late case was requested otherwise';
    end if;
    perform from operations.dimension_revision as r
    where r.projection_version = p_version and r.settlement_dimension_id = p_case ->> 'dimensionId'
      and r.revision = (p_case ->> 'revision')::bigint
      and (r.kind, r.fact_ref, r.fact_digest, r.case_ref)
          is distinct from ('request_open', p_case ->> 'factRef', p_case ->> 'factDigest', p_case ->> 'caseRef');
    if found then
        raise exception using errcode = 'OW001', message = 'the opening transition says otherwise';
    end if;
    perform operations.late_meet(p_version, p_case ->> 'dimensionId', (p_case ->> 'revision')::bigint);
    perform operations.event_keep(p_version, v_event, p_envelope, p_case - 'dimensionId',
        array['case', 'dimension'], array[p_case ->> 'caseRef', p_case ->> 'dimensionId']);
end $$;
