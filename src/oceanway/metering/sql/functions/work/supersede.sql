-- Purpose: ends the started work of a lane for the benefit of the next generation (MTR-11); the body is the same whoever
--   writes it: it names the latest started attempt and the generation that follows (REF-27).
-- Locks: none beyond the row; the caller holds the lane.
-- Errors: OW001 finished otherwise; OW003 a finish of another attempt; OW009 no finish.
create or replace function metering.work_supersede(p_lane metering.lane, p_finish bytea)
returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
begin
    if p_finish is null then
        raise exception using errcode = 'OW009', message = 'the finish of the started work is missing';
    end if;
    if v_finish ->> 'meteringInputWorkRef' is distinct from p_lane.active_work_ref
        or v_finish #>> '{outcome,state}' is distinct from 'superseded'
        or (v_finish ->> 'attemptNumber')::integer is distinct from p_lane.attempt_number
        or (v_finish ->> 'fencingToken')::bigint is distinct from p_lane.fencing_token
        or (v_finish #>> '{outcome,supersededByWorkGeneration}')::bigint
            is distinct from p_lane.latest_work_generation + 1 then
        raise exception using errcode = 'OW003', message = 'the finish is not that of the latest started attempt';
    end if;
    return metering.work_finish_insert(p_finish);
end $$;
