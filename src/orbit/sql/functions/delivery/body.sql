-- Purpose: a delivery as HTTP shows it (specification, section 15), compact, members in that order. No secret, no digest,
--   no result body (API-10). Type and task come from the journal, which the delivery does not repeat (MAT-18).
-- Locks: none
-- Errors: none
create or replace function orbit.delivery_body(p_delivery orbit.event_deliveries)
returns text
language sql
stable
as $$
    select row_to_json(b)::text
    from (
        select p_delivery.delivery_id, p_delivery.subscription_id, p_delivery.event_id, e.type as event_type,
            p_delivery.event_sequence as sequence, e.task_id, p_delivery.state, p_delivery.attempts,
            p_delivery.attempt_budget, p_delivery.lease_epoch, orbit.time_text(p_delivery.available_at) as available_at,
            orbit.time_text(p_delivery.lease_expires_at) as lease_expires_at,
            p_delivery.lease_connection_id as connection_id, orbit.time_text(p_delivery.acked_at) as acked_at,
            p_delivery.revision, orbit.time_text(p_delivery.created_at) as created_at,
            orbit.time_text(p_delivery.updated_at) as updated_at
        from orbit.result_events as e where e.event_id = p_delivery.event_id
    ) as b
$$;
