-- Purpose: issues one further credential (OPS-07): for all queues of the namespace or for these, by name; with an end in
-- p_expires_in_seconds, or without one (null). Returns its body as JSON, without the token, which only the caller knows.
-- Locks: none.
-- Errors: OB006 an unknown queue, OB026 no such application or a value that is not allowed.
create or replace function orbit.credential_issue_v1(
    p_namespace text, p_application text, p_name text, p_token_sha256 bytea, p_actions text[], p_all_queues boolean,
    p_queues text[], p_expires_in_seconds integer default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_application orbit.applications := orbit.application_named(p_namespace, p_application);
    v_queues text[] := coalesce(p_queues, '{}');
    v_queue_ids text[];
    v_id text;
begin
    if p_all_queues is null or p_all_queues = (cardinality(v_queues) > 0) then
        raise exception using errcode = 'OB026', message = 'a credential is for all queues or for one or more named ones';
    end if;
    if p_expires_in_seconds not between 1 and 315360000 then
        raise exception using errcode = 'OB026', message = 'a credential ends within 1 second to 10 years';
    end if;
    v_queue_ids := array(
        select q.queue_id from unnest(v_queues) with ordinality as s (name, position)
        join orbit.queues as q on q.namespace_id = v_application.namespace_id and q.name = s.name
        group by q.queue_id order by min(s.position));
    if cardinality(v_queue_ids) <> (select count(distinct s.name) from unnest(v_queues) as s (name)) then
        raise exception using errcode = 'OB006', message = 'a named queue does not exist in the namespace';
    end if;
    v_id := orbit.credential_insert(v_application.namespace_id, v_application.application_id, p_name, p_token_sha256,
        p_actions, p_all_queues, v_queue_ids, clock_timestamp() + make_interval(secs => p_expires_in_seconds), null);
    return orbit.credential_body(v_id);
end $$;
