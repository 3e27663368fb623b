-- Purpose: makes the namespace (with its stream row), application and queues that are missing, and issues one new
-- credential for these queues (OPS-01). An existing credential is never changed (AUT-08); which actions the new one has
-- is the caller's explicit choice (AUT-07). A limit of open tasks is set when one is given. Returns JSON without the token.
-- Locks: unique keys of what is made; the quota row with a limit.
-- Errors: OB026 a name, an action or the limit.
create or replace function orbit.access_bootstrap_v1(
    p_namespace text, p_application text, p_queues text[], p_credential_name text, p_token_sha256 bytea, p_actions text[],
    p_max_open_tasks integer default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_namespace_id text := orbit.namespace_ensure(p_namespace);
    v_application_id text := orbit.application_ensure(v_namespace_id, p_application);
    v_queue text;
    v_queue_id text;
    v_queue_ids text[] := '{}';
    v_credential_id text;
begin
    if p_queues is null or cardinality(p_queues) = 0 then
        raise exception using errcode = 'OB026', message = 'at least one queue must be named';
    end if;
    foreach v_queue in array p_queues loop
        v_queue_id := (orbit.queue_ensure(v_namespace_id, v_queue, null, null)).queue_id;
        if v_queue_id <> all (v_queue_ids) then
            v_queue_ids := v_queue_ids || v_queue_id;
        end if;
    end loop;
    if p_max_open_tasks is not null then
        perform orbit.quota_set(v_namespace_id, v_application_id, p_max_open_tasks);
    end if;
    v_credential_id := orbit.credential_insert(v_namespace_id, v_application_id, p_credential_name, p_token_sha256,
        p_actions, false, v_queue_ids, null, null);
    return (
        select row_to_json(b)::text
        from (select c.namespace_id, c.application_id, c.queues, c.credential_id, c.actions
              from json_to_record(orbit.credential_body(v_credential_id)::json)
                  as c (namespace_id text, application_id text, queues json, credential_id text, actions json)) as b);
end $$;
