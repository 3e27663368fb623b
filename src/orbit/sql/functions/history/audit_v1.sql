-- Purpose: the audit log as operations of a history, process `database`: begin and end are the time of the audit row,
--   which is written under the lock that orders the action. Null is every namespace.
-- Locks: none
-- Errors: none
create or replace function orbit.history_audit_v1(p_namespace text)
returns setof text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
with audited as (
    select a.audit_id, a.namespace_id, a.action, a.resource_id, a.detail_json::json as detail,
           orbit.time_text(a.created_at) as at
    from orbit.audit_log as a
    join orbit.namespaces as n on n.namespace_id = a.namespace_id
    where (p_namespace is null or n.name = p_namespace)
      and a.action in ('event.delivery.authorized', 'event.delivery.acked', 'event.subscription.created',
                       'event.subscription.paused', 'event.subscription.resumed', 'event.delivery.retried',
                       'task.result.confirmed', 'task.cancelled', 'task.resolved', 'task.attempt.recovered'))
select json_strip_nulls(case
    when a.action = 'event.delivery.authorized' then json_build_object(
        'op', 'claim', 'id', a.audit_id, 'process', 'database', 'begin', a.at, 'end', a.at,
        'subscription', a.detail -> 'subscription_id', 'connection', a.detail -> 'connection_id',
        'leased', json_build_array(json_build_object(
            'delivery', a.resource_id, 'event', a.detail -> 'event_id', 'sequence', a.detail -> 'event_sequence',
            'epoch', a.detail -> 'lease_epoch', 'attempts', a.detail -> 'attempts',
            'lease_expires_at', a.detail -> 'lease_expires_at')))
    when a.action = 'event.delivery.acked' then json_build_object(
        'op', 'ack', 'id', a.audit_id, 'process', 'database', 'begin', a.at, 'end', a.at,
        'subscription', a.detail -> 'subscription_id', 'delivery', a.resource_id,
        'epoch', a.detail -> 'lease_epoch', 'outcome', 'ACKED')
    when a.action = 'event.delivery.retried' then json_build_object(
        'op', 'retry', 'id', a.audit_id, 'process', 'database', 'begin', a.at, 'end', a.at,
        'subscription', a.detail -> 'subscription_id', 'delivery', a.resource_id,
        'additional_attempts', a.detail -> 'additional_attempts')
    when a.action = 'event.subscription.created' then json_build_object(
        'op', 'create', 'id', a.audit_id, 'process', 'database', 'begin', a.at, 'end', a.at,
        'subscription', a.resource_id, 'from_sequence', a.detail -> 'from_sequence')
    when a.action like 'event.subscription.%' then json_build_object(
        'op', case a.action when 'event.subscription.paused' then 'pause' else 'resume' end,
        'id', a.audit_id, 'process', 'database', 'begin', a.at, 'end', a.at, 'subscription', a.resource_id)
    else json_build_object(
        'op', 'confirm', 'id', a.audit_id, 'process', 'database', 'begin', a.at, 'end', a.at,
        'way', case a.action when 'task.result.confirmed' then 'confirmed' when 'task.cancelled' then 'cancelled'
                             when 'task.resolved' then 'resolved' else 'recovered' end,
        'namespace', a.namespace_id, 'task', a.resource_id, 'attempt', a.detail -> 'attempt_id',
        'event', a.detail -> 'event_id', 'event_type', a.detail -> 'event_type',
        'sequence', a.detail -> 'sequence')
    end)::text
from audited as a
$$;
