-- Purpose: which source an accepted event is about, at which version, and which lane it belongs to: usage to the eligibility
--   lane, cost to its own one (RCP-15 to RCP-17).
-- Locks: none.
-- Errors: none; an event of another type has no source.
create or replace function metering.input_source(p_envelope jsonb)
returns table (
    execution_attempt_id text, source_kind text, gateway_deployment_id text, dimension_key text, state_version bigint,
    source_ref text, source_schema_version text, source_digest_algorithm_version text, source_digest text,
    source_event_id uuid, lane_kind text, lane_deployment_id text, lane_dimension_key text
)
language sql
immutable
as $$
    select p ->> 'executionAttemptId', 'execution_eligibility', '', '',
        (p_envelope #>> '{aggregate,revision}')::bigint,
        p ->> 'executionEligibilityFactRef', p ->> 'executionEligibilityFactSchemaVersion',
        p ->> 'executionEligibilityFactDigestAlgorithmVersion', p ->> 'executionEligibilityFactDigest',
        (p_envelope ->> 'eventId')::uuid, 'eligibility_and_settlement_input', '', ''
    from (select p_envelope -> 'payload') as e (p)
    where p_envelope ->> 'eventType' = 'execution.attempt-eligibility.finalized@1'
    union all
    select p ->> 'executionAttemptId', p ->> 'providerEvidenceKind', p ->> 'gatewayDeploymentId',
        p ->> 'evidenceDimensionKey', (p ->> 'currentAvailabilityStateVersion')::bigint,
        p ->> 'currentAvailabilityRef', p ->> 'currentAvailabilitySchemaVersion',
        p ->> 'currentAvailabilityDigestAlgorithmVersion', p ->> 'currentAvailabilityDigest',
        (p_envelope ->> 'eventId')::uuid,
        case p ->> 'providerEvidenceKind' when 'provider_cost' then 'provider_cost'
            else 'eligibility_and_settlement_input' end,
        case p ->> 'providerEvidenceKind' when 'provider_cost' then p ->> 'gatewayDeploymentId' else '' end,
        case p ->> 'providerEvidenceKind' when 'provider_cost' then p ->> 'evidenceDimensionKey' else '' end
    from (select p_envelope -> 'payload') as e (p)
    where p_envelope ->> 'eventType' = 'gateway.evidence-availability.current-changed@1';
$$;
