-- Purpose: subscriptions and deliveries as lines of a history. Placeholders from before the journal are left out:
--   nothing was promised of them. Null is every namespace.
-- Locks: none
-- Errors: none
create or replace function orbit.history_subscriptions_v1(p_namespace text)
returns setof text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
select json_build_object(
           'op', 'subscription', 'subscription', s.subscription_id, 'namespace', s.namespace_id,
           'queue', s.queue_id, 'types', s.types, 'status', s.status, 'from_sequence', s.from_sequence,
           'cursor', s.cursor_sequence, 'pending_count', s.pending_count, 'max_pending', s.max_pending,
           'max_attempts', s.max_attempts, 'revision', s.revision)::text
from orbit.event_subscriptions as s
join orbit.namespaces as n on n.namespace_id = s.namespace_id
where not s.legacy and (p_namespace is null or n.name = p_namespace)
union all
select json_strip_nulls(json_build_object(
           'op', 'delivery', 'delivery', d.delivery_id, 'subscription', d.subscription_id, 'event', d.event_id,
           'sequence', d.event_sequence, 'state', d.state, 'attempts', d.attempts, 'epoch', d.lease_epoch,
           'budget', d.attempt_budget, 'created_at', orbit.time_text(d.created_at),
           'acked_at', orbit.time_text(d.acked_at)))::text
from orbit.event_deliveries as d
join orbit.namespaces as n on n.namespace_id = d.namespace_id
where not d.legacy and (p_namespace is null or n.name = p_namespace)
$$;
