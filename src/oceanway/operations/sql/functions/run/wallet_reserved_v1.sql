-- Purpose: a wallet event completes the summary of its run, or waits for the run event and makes nothing else (OPS-14).
-- Locks: advisory on the projection version.
-- Errors: OW001 the run event, or any earlier event of this run, says something else; another reservation waits for it.
create or replace function operations.run_wallet_reserved_v1(p_version text, p_envelope bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_operation_id constant text := v_payload ->> 'runId';
begin
    perform operations.event_lock(p_version);
    perform from operations.operation_summary as s
    where s.projection_version = p_version and s.operation_id = v_operation_id;
    if found then
        perform operations.run_link(p_version, v_operation_id, v_event, p_envelope);
        return;
    end if;
    perform from operations.operation_identity as i
    where i.projection_version = p_version
      and (i.operation_id = v_operation_id or i.billing_reservation_id = v_payload ->> 'billingReservationId')
      and not operations.event_same_identity(i, v_payload);
    if found then
        raise exception using errcode = 'OW001', message = 'another identity than an earlier event of this run';
    end if;
    insert into operations.pending_unlinked_reservations (projection_version, billing_reservation_id, run_id, event_id, envelope)
    values (p_version, v_payload ->> 'billingReservationId', v_operation_id, (v_event ->> 'eventId')::uuid, p_envelope)
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = 'another reservation waits for this run';
    end if;
end $$;
