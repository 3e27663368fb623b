-- Purpose: streams and journal rows as lines of a history (docs/explanation/orbit-history-checker.md): digests of
--   snapshots, never their text. Null is every namespace.
-- Locks: none
-- Errors: none
create or replace function orbit.history_journal_v1(p_namespace text)
returns setof text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
select json_build_object(
           'op', 'stream', 'namespace', s.namespace_id, 'last_sequence', s.last_sequence,
           'retained_from', s.retained_from_sequence)::text
from orbit.event_streams as s
join orbit.namespaces as n on n.namespace_id = s.namespace_id
where p_namespace is null or n.name = p_namespace
union all
select json_build_object(
           'op', 'result', 'namespace', r.namespace_id, 'queue', r.queue_id, 'task', r.task_id, 'event', r.event_id,
           'event_type', r.type, 'sequence', r.sequence, 'snapshot', orbit.history_digest(r.snapshot_json),
           'begin', orbit.time_text(e.created_at), 'end', orbit.time_text(r.created_at))::text
from orbit.result_events as r
join orbit.events as e on e.event_id = r.event_id
join orbit.namespaces as n on n.namespace_id = r.namespace_id
where p_namespace is null or n.name = p_namespace
$$;
