-- Purpose: takes the lane of a work for the holder of its lease; a stale token writes nothing (MTR-14, RCP-30).
-- Locks: the lane row.
-- Errors: OW002 the work is not the active one, or the lease another's.
create or replace function metering.lane_hold(p_work_ref text, p_fencing_token bigint)
returns metering.lane
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_work record;
    v_lane metering.lane;
begin
    select w.execution_attempt_id, w.lane_kind, w.gateway_deployment_id, w.source_evidence_dimension_key into v_work
    from metering.work as w where w.metering_input_work_ref = p_work_ref;
    select l.* into v_lane from metering.lane as l
    where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
        = (v_work.execution_attempt_id, v_work.lane_kind, v_work.gateway_deployment_id,
            v_work.source_evidence_dimension_key)
    for no key update;
    if v_lane.active_work_ref is distinct from p_work_ref or v_lane.fencing_token is distinct from p_fencing_token
        or v_lane.lease_owner is null then
        raise exception using errcode = 'OW002', message = 'the lease of this work is not held';
    end if;
    return v_lane;
end $$;
