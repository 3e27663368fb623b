-- Purpose: requires that every input of a decision is still the newest one that billing knows of its dimension (AMB-28).
-- Locks: the settlement watermarks of the reservation, in order; the caller holds the fence.
-- Errors: OW002 a newer input is known, or a dimension has no watermark.
create or replace function billing.finalization_compare_inputs(p_reservation text, p_dimensions jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from billing.settlement_inbox as i
    where i.billing_reservation_id = p_reservation order by i.settlement_dimension_id for no key update;
    perform from jsonb_array_elements(p_dimensions) as d (item)
    left join billing.settlement_inbox as i on i.settlement_dimension_id = d.item ->> 'settlementDimensionId'
    where (i.billing_reservation_id, i.run_step_id, i.execution_attempt_id, i.charge_dimension_key,
            i.settlement_input_snapshot_ref, i.settlement_input_snapshot_schema_version,
            i.settlement_input_snapshot_digest_algorithm_version, i.settlement_input_snapshot_digest,
            i.settlement_input_state_version)
        is distinct from (p_reservation, d.item ->> 'runStepId', d.item ->> 'executionAttemptId',
            d.item ->> 'chargeDimensionKey', d.item ->> 'settlementInputSnapshotRef',
            d.item ->> 'settlementInputSnapshotSchemaVersion',
            d.item ->> 'settlementInputSnapshotDigestAlgorithmVersion', d.item ->> 'settlementInputSnapshotDigest',
            (d.item ->> 'settlementInputStateVersion')::bigint);
    if found then
        raise exception using errcode = 'OW002', message = 'a newer settlement input of a dimension is known';
    end if;
end $$;
