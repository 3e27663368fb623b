-- Purpose: the manifests of attempts, in the order asked (REF-18).
-- Locks: none.
-- Errors: none; an unknown attempt gives null.
create or replace function execution.attempt_read_v1(p_attempts text[])
returns setof bytea
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select a.document
    from unnest(p_attempts) with ordinality as i (attempt_id, position)
    left join execution.attempt as a on a.execution_attempt_id = i.attempt_id
    order by i.position;
$$;
