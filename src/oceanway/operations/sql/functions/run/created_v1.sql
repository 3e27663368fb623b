-- Purpose: a run event makes the operation summary, and links the reservation if its wallet event came before
--   (OPS-13, OPS-14).
-- Locks: advisory on the projection version.
-- Errors: OW001 the waiting wallet event, or any earlier event of this run, says something else.
create or replace function operations.run_created_v1(p_version text, p_envelope bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_operation_id constant text := operations.event_enter(p_version, v_payload);
    v_steps constant text[] := array(select jsonb_array_elements_text(v_payload -> 'runStepIds'));
    v_waiting operations.pending_unlinked_reservations;
begin
    insert into operations.operation_summary (projection_version, operation_id, run_event_id, run_step_ids,
        run_admission_manifest_ref, run_admission_manifest_digest, admitted_at)
    values (p_version, v_operation_id, (v_event ->> 'eventId')::uuid, v_steps,
        v_payload ->> 'runAdmissionManifestRef', v_payload ->> 'runAdmissionManifestDigest',
        (v_payload ->> 'admittedAt')::timestamptz);
    perform operations.event_keep(p_version, v_event, p_envelope,
        jsonb_build_object('steps', cardinality(v_steps),
            'runAdmissionManifestRef', v_payload ->> 'runAdmissionManifestRef',
            'runAdmissionManifestDigest', v_payload ->> 'runAdmissionManifestDigest'),
        array['run', 'account', 'reservation'] || array_fill('step'::text, array[cardinality(v_steps)]),
        array[v_operation_id, v_payload ->> 'billingAccountId', v_payload ->> 'billingReservationId'] || v_steps);
    delete from operations.pending_unlinked_reservations as p
    where p.projection_version = p_version
      and (p.billing_reservation_id = v_payload ->> 'billingReservationId' or p.run_id = v_operation_id)
    returning p.* into v_waiting;
    if found then
        perform operations.run_link(p_version, v_operation_id, convert_from(v_waiting.envelope, 'UTF8')::jsonb,
            v_waiting.envelope);
    end if;
end $$;
