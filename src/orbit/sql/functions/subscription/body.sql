-- Purpose: a subscription as HTTP shows it (specification, section 15), compact, members in that order. The pause and
--   resume of a subscription store this text as the receipt of their idempotency identity.
-- Locks: none
-- Errors: none
create or replace function orbit.subscription_body(p_subscription orbit.event_subscriptions)
returns text
language sql
stable
as $$
    select row_to_json(b)::text
    from (
        select p_subscription.subscription_id, p_subscription.namespace_id, p_subscription.name,
            (select q.name from orbit.queues as q where q.queue_id = p_subscription.queue_id) as queue,
            p_subscription.queue_id, p_subscription.types, p_subscription.status, p_subscription.from_sequence,
            p_subscription.cursor_sequence, p_subscription.max_pending, p_subscription.max_attempts,
            p_subscription.pending_count, p_subscription.revision, p_subscription.owner_credential_id,
            orbit.time_text(p_subscription.created_at) as created_at,
            orbit.time_text(p_subscription.updated_at) as updated_at
    ) as b
$$;
