-- Purpose: writes the only finish of a work, or compares with the one there; returns the first (MTR-13).
-- Locks: none beyond the row.
-- Errors: OW001 the work has finished otherwise; 23503 an attempt or token that was never started.
create or replace function metering.work_finish_insert(p_document bytea)
returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_document, 'UTF8')::jsonb;
    v_first record;
begin
    insert into metering.work_finish (metering_input_work_ref, metering_input_work_attempt_finished_ref, lane_kind,
        attempt_number, fencing_token, outcome, digest, document)
    values (v_finish ->> 'meteringInputWorkRef', v_finish ->> 'meteringInputWorkAttemptFinishedRef',
        v_finish #>> '{lane,kind}', (v_finish ->> 'attemptNumber')::integer, (v_finish ->> 'fencingToken')::bigint,
        v_finish #>> '{outcome,state}', v_finish ->> 'meteringInputWorkAttemptFinishedDigest', p_document)
    on conflict (metering_input_work_ref) do nothing;
    if found then
        return p_document;
    end if;
    select f.digest, f.document into v_first from metering.work_finish as f
    where f.metering_input_work_ref = v_finish ->> 'meteringInputWorkRef';
    if v_first.digest <> v_finish ->> 'meteringInputWorkAttemptFinishedDigest' then
        raise exception using errcode = 'OW001', message = 'the work has finished otherwise';
    end if;
    return v_first.document;
end $$;
