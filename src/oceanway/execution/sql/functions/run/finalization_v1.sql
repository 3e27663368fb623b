-- Purpose: closure facts with their attempt sets, and the conflict under which a run stands, in the order asked (REF-38).
-- Locks: none.
-- Errors: none; a run without a closure gives nulls.
create or replace function execution.run_finalization_v1(p_runs text[])
returns table (finalization bytea, attempt_set bytea, conflict bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select f.document, s.document, c.document
    from unnest(p_runs) with ordinality as i (run_id, position)
    left join execution.run_finalization as f on f.run_id = i.run_id
    left join execution.attempt_set_manifest as s on s.run_id = i.run_id
    left join execution.finalization_conflict as c on c.run_id = i.run_id and c.repaired_at is null
    order by i.position;
$$;
