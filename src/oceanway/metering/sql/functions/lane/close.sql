-- Purpose: finishes the work of a held lane and moves the lane to what came of it (A.3, A.4).
-- Locks: the lane row.
-- Errors: OW002 the lease is lost; OW003 a finish of another lease, or a state that keeps the work active.
create or replace function metering.lane_close(p_fencing_token bigint, p_finish bytea, p_state bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_state constant jsonb := convert_from(p_state, 'UTF8')::jsonb;
    v_lane metering.lane;
begin
    v_lane := metering.lane_hold(v_finish ->> 'meteringInputWorkRef', p_fencing_token);
    if (v_finish ->> 'fencingToken')::bigint <> p_fencing_token
        or (v_finish ->> 'attemptNumber')::integer <> v_lane.attempt_number
        or v_finish #>> '{outcome,state}' = 'superseded'
        or v_state #>> '{activeWork,state}' is distinct from 'none' then
        raise exception using errcode = 'OW003', message = 'finish and lane state do not belong to this lease';
    end if;
    perform metering.work_finish_insert(p_finish);
    update metering.lane as l
    set state = v_state ->> 'state', coordination_state = v_state, active_work_ref = null, lease_owner = null,
        lease_expires_at = null
    where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
        = (v_lane.execution_attempt_id, v_lane.lane_kind, v_lane.gateway_deployment_id,
            v_lane.source_evidence_dimension_key);
end $$;
