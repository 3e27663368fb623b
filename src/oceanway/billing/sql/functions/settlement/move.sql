-- Purpose: moves a dimension's watermark forward to an input, or finds that it is there (CAT-02, AMB-07, AMB-36).
-- Locks: the watermark.
-- Errors: OW001 another input of this state version, or another identity; OW002 the watermark is not the expected one.
-- Returns: the inbox revision.
create or replace function billing.settlement_move(p_dimension text, p_input jsonb, p_expected_inbox_revision bigint)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_version constant bigint := (p_input ->> 'settlementInputStateVersion')::bigint;
    v_row billing.settlement_inbox;
begin
    insert into billing.settlement_inbox (settlement_dimension_id, billing_reservation_id, billing_account_id, run_id,
        run_step_id, execution_attempt_id, charge_dimension_key, inbox_revision, settlement_input_snapshot_ref,
        settlement_input_snapshot_schema_version, settlement_input_snapshot_digest_algorithm_version,
        settlement_input_snapshot_digest, settlement_input_state_version, settlement_economic_identity)
    values (p_dimension, p_input ->> 'billingReservationId', p_input ->> 'billingAccountId', p_input ->> 'runId',
        p_input ->> 'runStepId', p_input ->> 'executionAttemptId', p_input ->> 'chargeDimensionKey', 1,
        p_input ->> 'settlementInputSnapshotRef', p_input ->> 'settlementInputSnapshotSchemaVersion',
        p_input ->> 'settlementInputSnapshotDigestAlgorithmVersion', p_input ->> 'settlementInputSnapshotDigest',
        v_version, p_input -> 'settlementEconomicIdentity')
    on conflict (settlement_dimension_id) do nothing;
    if found then
        if p_expected_inbox_revision <> 0 then
            raise exception using errcode = 'OW002', message = 'the settlement watermark is not the expected one';
        end if;
        return 1;
    end if;
    select * into v_row from billing.settlement_inbox as i
    where i.settlement_dimension_id = p_dimension for no key update;
    if v_row.inbox_revision <> p_expected_inbox_revision or v_row.settlement_input_state_version > v_version then
        raise exception using errcode = 'OW002', message = 'the settlement watermark is not the expected one';
    end if;
    if not p_input @> jsonb_build_object('billingReservationId', v_row.billing_reservation_id,
            'billingAccountId', v_row.billing_account_id, 'runId', v_row.run_id, 'runStepId', v_row.run_step_id,
            'executionAttemptId', v_row.execution_attempt_id, 'chargeDimensionKey', v_row.charge_dimension_key)
        or (v_row.settlement_input_state_version = v_version and not p_input @> billing.settlement_quint(v_row)) then
        raise exception using errcode = 'OW001', message = 'the watermark of this dimension says otherwise';
    end if;
    if v_row.settlement_input_state_version = v_version then
        return v_row.inbox_revision;
    end if;
    update billing.settlement_inbox as i
    set inbox_revision = i.inbox_revision + 1, settlement_input_snapshot_ref = p_input ->> 'settlementInputSnapshotRef',
        settlement_input_snapshot_schema_version = p_input ->> 'settlementInputSnapshotSchemaVersion',
        settlement_input_snapshot_digest_algorithm_version = p_input ->> 'settlementInputSnapshotDigestAlgorithmVersion',
        settlement_input_snapshot_digest = p_input ->> 'settlementInputSnapshotDigest',
        settlement_input_state_version = v_version,
        settlement_economic_identity = p_input -> 'settlementEconomicIdentity', updated_at = clock_timestamp()
    where i.settlement_dimension_id = p_dimension;
    return v_row.inbox_revision + 1;
end $$;
