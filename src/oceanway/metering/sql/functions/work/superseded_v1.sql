-- Purpose: lets the late worker of a superseded work append the finish that the inbox transaction writes on behalf, or get
--   the first one (MTR-12, MTR-13). Null where the work is still the lane's, or a later attempt of it was started.
-- Locks: the lane row.
-- Errors: OW001 the finish there is another one.
create or replace function metering.work_superseded_v1(p_finish bytea)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_work record;
    v_generation bigint;
begin
    select w.* into v_work from metering.work as w
    where w.metering_input_work_ref = v_finish ->> 'meteringInputWorkRef';
    v_generation := (
        select l.latest_work_generation from metering.lane as l
        where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
            = (v_work.execution_attempt_id, v_work.lane_kind, v_work.gateway_deployment_id,
                v_work.source_evidence_dimension_key)
        for no key update);
    if v_finish #>> '{outcome,state}' <> 'superseded'
        or (v_finish #>> '{outcome,supersededByWorkGeneration}')::bigint <> v_work.work_generation + 1
        or v_generation is null or v_generation <= v_work.work_generation
        or (v_finish ->> 'attemptNumber')::integer <> (
            select max(s.attempt_number) from metering.work_start as s
            where s.metering_input_work_ref = v_work.metering_input_work_ref) then
        return null;
    end if;
    if exists (select from metering.work_finish as f
        where f.metering_input_work_ref = v_work.metering_input_work_ref and f.outcome <> 'superseded') then
        return null;  -- it had ended before the next generation came
    end if;
    return metering.work_finish_insert(p_finish);
end $$;
