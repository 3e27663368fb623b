-- Purpose: leases the active works that are due, oldest first, each with a started row and a new token; the lanes never show
--   any work but that of their latest generation (AMB-45, AMB-46). Returns with each what its worker needs of this database.
-- Locks: lane rows, those that nobody holds.
-- Errors: none.
create or replace function metering.work_claim_v1(p_lane_kind text, p_owner text, p_limit integer, p_lease interval)
returns table (
    work bytea, manifest bytea, envelopes bytea[], pointers jsonb, attempt_number integer, fencing_token bigint,
    fence_revision bigint
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_moment constant timestamptz := clock_timestamp();
    v_claimed text[];
begin
    with due as materialized (
        select l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key
        from metering.lane as l
        where l.active_work_ref is not null and l.lane_kind = p_lane_kind and l.available_at <= v_moment
        order by l.available_at
        limit p_limit
        for no key update skip locked),
    leased as (
        update metering.lane as l
        set lease_owner = p_owner, fencing_token = nextval('metering.fencing_token_seq'),
            attempt_number = l.attempt_number + 1,
            lease_expires_at = v_moment + p_lease, available_at = v_moment + p_lease
        from due as d
        where (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id, l.source_evidence_dimension_key)
            = (d.execution_attempt_id, d.lane_kind, d.gateway_deployment_id, d.source_evidence_dimension_key)
        returning l.active_work_ref, l.attempt_number, l.fencing_token),
    started as (
        insert into metering.work_start (metering_input_work_ref, attempt_number, fencing_token, lease_owner)
        select l.active_work_ref, l.attempt_number, l.fencing_token, p_owner from leased as l
        returning metering_input_work_ref)
    select array_agg(s.metering_input_work_ref) into v_claimed from started as s;
    return query  -- a statement of its own: the watermarks as they are under the locks
    select w.document, f.manifest,
        array(select m.envelope from metering.watermark as m
              where m.execution_attempt_id = l.execution_attempt_id
                and case l.lane_kind
                    when 'provider_cost' then m.source_kind = 'provider_cost'
                        and m.gateway_deployment_id = l.gateway_deployment_id
                        and m.dimension_key = l.source_evidence_dimension_key
                    else m.source_kind <> 'provider_cost' end
              order by m.gateway_deployment_id, m.dimension_key),
        case l.lane_kind when 'provider_cost' then '[]'::jsonb
            else metering.settlement_pointers(l.execution_attempt_id) end,
        l.attempt_number, l.fencing_token, l.fence_revision
    from unnest(v_claimed) as c (work_ref)
    join metering.work as w on w.metering_input_work_ref = c.work_ref
    join metering.lane as l on (l.execution_attempt_id, l.lane_kind, l.gateway_deployment_id,
        l.source_evidence_dimension_key) = (w.execution_attempt_id, w.lane_kind, w.gateway_deployment_id,
        w.source_evidence_dimension_key)
    join metering.attempt_input_fence as f on f.execution_attempt_id = w.execution_attempt_id
    order by l.execution_attempt_id, l.gateway_deployment_id, l.source_evidence_dimension_key;
end $$;
