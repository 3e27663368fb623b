-- Purpose: a late case was resolved; the owner's chain of exposures behind it has been read and verified by the caller, so
--   that the resolution may wait for its request or its cause as `pending_resolution` (TX-35, CASE-29).
-- Locks: advisory on the projection version.
-- Errors: OW001 another identity, a second resolution, or the state of the dimension says otherwise.
create or replace function operations.late_resolved_v1(
    p_version text, p_envelope bytea, p_case jsonb, p_read jsonb, p_read_arguments bytea, p_read_answer bytea
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_operation_id constant text := operations.event_enter(p_version, v_event -> 'payload');
    v_event_id constant uuid := (v_event ->> 'eventId')::uuid;
    v_revision constant bigint := (p_case ->> 'revision')::bigint;
begin
    insert into operations.late_case as c (projection_version, case_ref, operation_id, settlement_dimension_id, state,
        resolution_event_id, resolution_causation_id, resolved_revision, resolution_kind, resolution_fact_ref,
        resolution_fact_digest)
    values (p_version, p_case ->> 'caseRef', v_operation_id, p_case ->> 'dimensionId', 'pending_resolution', v_event_id,
        (v_event #>> '{correlation,causationId}')::uuid, v_revision, p_case ->> 'kind', p_case ->> 'factRef', p_case ->> 'factDigest')
    on conflict (projection_version, case_ref) do update
    set resolution_event_id = excluded.resolution_event_id, resolution_causation_id = excluded.resolution_causation_id,
        resolved_revision = excluded.resolved_revision,
        resolution_kind = excluded.resolution_kind, resolution_fact_ref = excluded.resolution_fact_ref,
        resolution_fact_digest = excluded.resolution_fact_digest, state = 'pending_resolution'
    where c.resolution_event_id is null
      and (c.operation_id, c.settlement_dimension_id) = (excluded.operation_id, excluded.settlement_dimension_id)
      and excluded.resolved_revision > c.opened_revision;
    if not found then
        raise exception using errcode = 'OW001', message = 'this late case was resolved otherwise';
    end if;
    perform operations.late_meet(p_version, p_case ->> 'dimensionId', v_revision);
    perform operations.case_remember(p_read, p_read_arguments, p_read_answer);
    perform operations.event_keep(p_version, v_event, p_envelope, p_case - 'dimensionId',
        array['case', 'dimension'], array[p_case ->> 'caseRef', p_case ->> 'dimensionId']);
end $$;
