-- Purpose: what the closure of runs is made from: the admission, the attempts stored at this moment in order of the set,
--   and the closure fact with its event if there is one. In the order asked.
-- Locks: none.
-- Errors: none; an unknown run gives a row of nulls.
create or replace function execution.run_closing_v1(p_runs text[])
returns table (admission bytea, attempts jsonb, finalization bytea, closed_event_id uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select r.admission_document, case when r.run_id is not null then execution.run_attempts(r.run_id) end, f.document,
        f.closed_event_id
    from unnest(p_runs) with ordinality as i (run_id, position)
    left join execution.run_execution as r on r.run_id = i.run_id
    left join execution.run_finalization as f on f.run_id = i.run_id
    order by i.position;
$$;
