-- Purpose: that an envelope is the event of this snapshot: type, aggregate, revision, complete quint and predecessor
--   (APP-25).
-- Locks: none.
-- Errors: OW003.
create or replace function metering.settlement_check_event(p_snapshot jsonb, p_envelope jsonb, p_attempt text)
returns void
language plpgsql
immutable
as $$
begin
    if p_envelope ->> 'eventType' is distinct from 'metering.settlement-input.current-changed@1'
        or p_envelope #>> '{aggregate,id}' is distinct from p_snapshot ->> 'settlementDimensionId'
        or p_envelope #> '{aggregate,revision}' is distinct from p_snapshot -> 'settlementInputStateVersion'
        or p_snapshot ->> 'executionAttemptId' is distinct from p_attempt
        or exists (
            select from unnest(array['settlementInputSnapshotRef', 'settlementInputSnapshotSchemaVersion',
                'settlementInputSnapshotDigestAlgorithmVersion', 'settlementInputSnapshotDigest',
                'settlementInputStateVersion', 'predecessor', 'executionAttemptId', 'chargeDimensionKey',
                'billingReservationId', 'runStepId', 'settlementEconomicIdentity']) as f (field)
            where p_envelope -> 'payload' -> f.field is distinct from p_snapshot -> f.field) then
        raise exception using errcode = 'OW003', message = 'the event does not announce its snapshot';
    end if;
end $$;
