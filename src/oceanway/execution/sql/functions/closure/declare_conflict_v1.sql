-- Purpose: records that two claims about the closure of a run exclude each other; until the repair its reads answer
--   `conflicting` (REF-21). The same fact again, while it is open, changes nothing.
-- Locks: the run.
-- Errors: OW001 another conflict of the run is open, or this one was repaired; OW004 no such run.
create or replace function execution.closure_declare_conflict_v1(p_document bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
    v_subject constant text := v_fact ->> 'runId';
begin
    perform from execution.run_execution as p where p.run_id = v_subject for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'there is no such run';
    end if;
    insert into execution.finalization_conflict (run_execution_finalization_conflict_fact_ref, run_id, digest, document)
    values (v_fact ->> 'runExecutionFinalizationConflictFactRef', v_subject, v_fact ->> 'runExecutionFinalizationConflictFactDigest', p_document)
    on conflict do nothing;
    if not found and not exists (
        select from execution.finalization_conflict as c
        where c.run_id = v_subject and c.repaired_at is null and c.digest = v_fact ->> 'runExecutionFinalizationConflictFactDigest') then
        raise exception using errcode = 'OW001', message = 'another conflict of the run is open, or this one was repaired';
    end if;
end $$;
