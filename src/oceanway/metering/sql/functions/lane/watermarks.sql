-- Purpose: the watermarks that make the trigger of a lane, in the order of sets (REF-28).
-- Locks: none.
-- Errors: none.
create or replace function metering.lane_watermarks(
    p_attempt text, p_lane_kind text, p_deployment text, p_dimension text
)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'source_kind', w.source_kind, 'gateway_deployment_id', w.gateway_deployment_id,
        'dimension_key', w.dimension_key, 'state_version', w.state_version, 'ref', w.source_ref,
        'schema_version', w.source_schema_version, 'digest_algorithm_version', w.source_digest_algorithm_version,
        'digest', w.source_digest, 'event_id', w.source_event_id)
        order by w.gateway_deployment_id, w.dimension_key), '[]')
    from metering.watermark as w
    where w.execution_attempt_id = p_attempt
      and case p_lane_kind
          when 'provider_cost' then w.source_kind = 'provider_cost' and w.gateway_deployment_id = p_deployment
              and w.dimension_key = p_dimension
          else w.source_kind <> 'provider_cost' end;
$$;
