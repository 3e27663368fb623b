-- Purpose: closes runs, all or none: after this no attempt can follow, and the only closure event of each is on its way
--   (TX-14). Items are parallel arrays.
-- Locks: the runs in order; the delivery set, shared.
-- Errors: OW002 an attempt was registered since the set was read; OW003 documents that do not belong together; OW004 no
--   such run; OW005 a run is closed; what `seapost.outbox_append_v1` raises.
create or replace function execution.run_close_v1(p_sets bytea[], p_facts bytea[], p_events bytea[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
begin
    if cardinality(p_facts) <> any (array[cardinality(p_sets), cardinality(p_events)]) then
        raise exception using errcode = 'OW003', message = 'each closure has one attempt set and one event';
    end if;
    for v_item in
        select i.attempt_set, i.fact, i.event from unnest(p_sets, p_facts, p_events) as i (attempt_set, fact, event)
        order by convert_from(i.fact, 'UTF8')::jsonb ->> 'runId'
    loop
        perform execution.run_close(v_item.attempt_set, v_item.fact, v_item.event);
    end loop;
    if cardinality(p_events) > 0 then
        perform seapost.outbox_append_v1(p_events);
    end if;
end $$;
