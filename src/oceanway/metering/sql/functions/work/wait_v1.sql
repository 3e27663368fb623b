-- Purpose: finishes an eligibility work whose counterpart is missing; the next event makes the next generation (TX-18).
-- Locks: the lane row.
-- Errors: OW002 the lease is lost; OW003 documents that do not belong together.
create or replace function metering.work_wait_v1(p_fencing_token bigint, p_finish bytea, p_state bytea)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_outcome constant jsonb := convert_from(p_finish, 'UTF8')::jsonb -> 'outcome';
    v_state constant text := convert_from(p_state, 'UTF8')::jsonb ->> 'state';
begin
    if (v_outcome ->> 'state', v_outcome ->> 'waitingFor', v_state) not in (
        ('waiting_for_counterpart', 'execution_eligibility', 'waiting_for_execution'),
        ('waiting_for_counterpart', 'gateway_usage', 'waiting_for_gateway_usage')) then
        raise exception using errcode = 'OW003', message = 'finish and lane wait for different things';
    end if;
    perform metering.lane_close(p_fencing_token, p_finish, p_state);
end $$;
