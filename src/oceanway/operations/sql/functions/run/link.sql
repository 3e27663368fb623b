-- Purpose: gives a run its reservation after the checks of causation and equality (OPS-14, REF-15).
-- Locks: none of its own; the caller has entered the event.
-- Errors: OW001 another cause, tenant, account, reservation or run; a reservation is linked already.
create or replace function operations.run_link(p_version text, p_operation_id text, p_event jsonb, p_envelope bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_payload constant jsonb := p_event -> 'payload';
begin
    update operations.operation_summary as s
    set wallet_event_id = (p_event ->> 'eventId')::uuid,
        reserved_amount = (v_payload ->> 'reservedAmount')::numeric,
        currency = v_payload ->> 'currency',
        reservation_state_version = (v_payload ->> 'reservationStateVersion')::bigint
    from operations.operation_identity as i
    where s.projection_version = p_version and s.operation_id = p_operation_id and s.wallet_event_id is null
      and s.run_event_id::text = p_event #>> '{correlation,causationId}'
      and i.projection_version = p_version and i.operation_id = p_operation_id
      and operations.event_same_identity(i, v_payload);
    if not found then
        raise exception using errcode = 'OW001', message = 'the wallet event does not belong to this run event';
    end if;
    perform operations.event_keep(p_version, p_event, p_envelope,
        jsonb_build_object('reservedAmount', v_payload ->> 'reservedAmount', 'currency', v_payload ->> 'currency'),
        array[]::text[], array[]::text[]);
end $$;
