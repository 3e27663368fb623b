-- Purpose: what an operator is shown of a credential that was just made: everything but the token, as JSON (OPS-01,
-- OPS-07).
-- Locks: none.
-- Errors: none.
create or replace function orbit.credential_body(p_credential_id text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select row_to_json(b)::text
    from (
        select c.namespace_id, c.application_id,
            array_to_json(array(
                select row_to_json(one)
                from (select q.queue_id, q.name
                      from unnest(c.queue_ids) with ordinality as s (queue_id, position)
                      join orbit.queues as q on q.queue_id = s.queue_id
                      order by s.position) as one)) as queues,
            c.credential_id, c.actions, c.all_queues, c.rotated_from, orbit.time_text(c.expires_at) as expires_at
        from orbit.credentials as c where c.credential_id = p_credential_id) as b
$$;
