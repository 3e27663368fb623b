-- Purpose: proves at commit that a result's state event has its journal row (SRC-21); stops a writer of before migration
-- 0013, which knows no journal (MIG-08). Looks up by primary key and compares afterwards: with more columns in the
-- condition, a plan cached on a small table uses another index and reads ever more rows (GEN-11).
-- Locks: none.
-- Errors: 23514.
create or replace function orbit.guard_require_journal()
returns trigger
language plpgsql
security definer  -- runs at commit, outside the function that wrote the row
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_row orbit.result_events%rowtype;
begin
    select r.* into v_row from orbit.result_events as r where r.event_id = new.event_id;
    if not found or (v_row.namespace_id, v_row.queue_id, v_row.task_id, v_row.type)
            is distinct from (new.namespace_id, new.queue_id, new.task_id, new.type) then
        raise exception using errcode = '23514',
            message = format('orbit: result event %s has no journal row', new.event_id);
    end if;
    return null;
end $$;
