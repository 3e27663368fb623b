-- Purpose: the moves of a lane that annexes A.3 and A.4 do not have: back in revision or generation, a new generation that
--   is not pending, a fencing token that does not rise, and out of a finished state without a new generation.
-- Locks: none.
-- Errors: 23001.
create or replace function metering.guard_lane()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.execution_attempt_id, new.lane_kind, new.gateway_deployment_id, new.source_evidence_dimension_key)
        is distinct from (old.execution_attempt_id, old.lane_kind, old.gateway_deployment_id,
            old.source_evidence_dimension_key)
        or new.fence_revision - old.fence_revision <> new.latest_work_generation - old.latest_work_generation
        or new.latest_work_generation not in (old.latest_work_generation, old.latest_work_generation + 1)
        or new.fencing_token < old.fencing_token then
        raise exception using errcode = '23001', message = 'metering: a lane only moves forward';
    end if;
    if new.latest_work_generation > old.latest_work_generation then
        if new.state <> 'pending' or new.active_work_ref is not distinct from old.active_work_ref
            or new.lease_owner is not null then
            raise exception using errcode = '23001', message = 'metering: a new generation is pending and not leased';
        end if;
    elsif new.trigger_digest <> old.trigger_digest
        or (old.active_work_ref is null and new.coordination_state <> old.coordination_state)
        or (new.active_work_ref is not null and new.active_work_ref is distinct from old.active_work_ref) then
        raise exception using errcode = '23001', message = 'metering: a finished lane waits for the next generation';
    end if;
    return new;
end $$;
