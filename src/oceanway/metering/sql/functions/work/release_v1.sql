-- Purpose: gives leases back after a temporary failure: nothing else is written, the works wait (MTR-39).
-- Locks: the lane rows.
-- Errors: none; a lease that is lost is left alone.
create or replace function metering.work_release_v1(
    p_work_refs text[], p_fencing_tokens bigint[], p_base interval, p_longest interval
)
returns void
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    update metering.lane as l
    set lease_owner = null, lease_expires_at = null, retry_count = l.retry_count + 1,
        available_at = clock_timestamp() + metering.lane_backoff(l.retry_count, p_base, p_longest)
    from unnest(p_work_refs, p_fencing_tokens) as r (work_ref, fencing_token)
    join metering.work as w on w.metering_input_work_ref = r.work_ref
    where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
        = (w.execution_attempt_id, w.lane_kind, w.gateway_deployment_id, w.source_evidence_dimension_key)
      and l.active_work_ref = r.work_ref and l.fencing_token = r.fencing_token and l.lease_owner is not null;
$$;
