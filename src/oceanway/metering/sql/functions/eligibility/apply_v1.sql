-- Purpose: commits what an eligibility work came to: decision, meter events, the snapshots of the dimensions that changed
--   with their events, finish and lane (TX-18 with TX-16, RCP-25, APP-24).
-- Locks: the lane row, then the settlement pointers by dimension; the delivery set, shared.
-- Errors: OW001 other content under an identity, the detail names the stage; OW002 the lease or a pointer is lost; OW003
--   documents that do not belong together; OW009 the finish does not list exactly the current snapshots.
create or replace function metering.eligibility_apply_v1(
    p_fencing_token bigint, p_decision bytea, p_receipts bytea[], p_meter_events bytea[], p_snapshots bytea[],
    p_envelopes bytea[], p_finish bytea, p_state bytea
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_listed constant jsonb := v_finish #> '{outcome,settlementInputSnapshots}';
    v_lane metering.lane;
begin
    v_lane := metering.lane_hold(v_finish ->> 'meteringInputWorkRef', p_fencing_token);
    if v_finish #>> '{outcome,state}' <> 'applied' then
        raise exception using errcode = 'OW003', message = 'the finish is not applied';
    end if;
    perform metering.validation_insert(p_receipts);
    perform metering.eligibility_decide(v_lane.active_work_ref, v_lane.execution_attempt_id, p_decision, p_meter_events);
    perform metering.settlement_advance(v_lane.execution_attempt_id, p_snapshots, p_envelopes);
    if (v_finish #>> '{outcome,settlementInputSnapshotCount}')::bigint
            <> (select count(*) from metering.settlement_pointer as p
                where p.execution_attempt_id = v_lane.execution_attempt_id)
        or exists (
            select from jsonb_to_recordset(v_listed) as i ("chargeDimensionKey" text, ref text, digest text,
                "stateVersion" bigint)
            left join metering.settlement_input_snapshot as s on s.settlement_input_snapshot_ref = i.ref
            left join metering.settlement_pointer as p
                on p.settlement_input_snapshot_ref = s.settlement_input_snapshot_ref
            where (p.execution_attempt_id, s.charge_dimension_key, s.digest, s.settlement_input_state_version)
                is distinct from (v_lane.execution_attempt_id, i."chargeDimensionKey", i.digest, i."stateVersion"))
        or jsonb_array_length(v_listed) <> (v_finish #>> '{outcome,settlementInputSnapshotCount}')::bigint then
        raise exception using errcode = 'OW009', message = 'the finish does not list the current snapshots';
    end if;
    perform metering.lane_close(p_fencing_token, p_finish, p_state);
end $$;
