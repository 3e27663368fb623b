-- Purpose: appends snapshots, moves their pointers by one and publishes each, its only event in the same transaction
--   (TX-16, APP-24 to APP-26, AMB-41).
-- Locks: the pointer rows in the order given, which is that of the dimensions; the delivery set, shared.
-- Errors: OW001 a version of a dimension that is there with other content, with the stage as detail; OW002 the pointer is
--   elsewhere; OW003 an event that does not announce its snapshot.
create or replace function metering.settlement_advance(p_attempt text, p_snapshots bytea[], p_envelopes bytea[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_snapshot jsonb;
    v_envelope jsonb;
    v_dimension text;
    v_version bigint;
begin
    if cardinality(p_snapshots) <> cardinality(p_envelopes) then
        raise exception using errcode = 'OW003', message = 'each snapshot has one event';
    end if;
    for v_position in 1..cardinality(p_snapshots) loop
        v_snapshot := convert_from(p_snapshots[v_position], 'UTF8')::jsonb;
        v_envelope := convert_from(p_envelopes[v_position], 'UTF8')::jsonb;
        v_dimension := v_snapshot ->> 'settlementDimensionId';
        v_version := (v_snapshot ->> 'settlementInputStateVersion')::bigint;
        perform metering.settlement_check_event(v_snapshot, v_envelope, p_attempt);
        insert into metering.settlement_input_snapshot (settlement_input_snapshot_ref, settlement_dimension_id,
            settlement_input_state_version, predecessor_state_version, execution_attempt_id, charge_dimension_key,
            eligibility_decision_ref, quantity, digest, document, current_changed_event_id)
        values (v_snapshot ->> 'settlementInputSnapshotRef', v_dimension, v_version,
            (v_snapshot #>> '{predecessor,settlementInputStateVersion}')::bigint, p_attempt,
            v_snapshot ->> 'chargeDimensionKey', v_snapshot ->> 'eligibilityDecisionRef',
            (v_snapshot ->> 'quantity')::numeric, v_snapshot ->> 'settlementInputSnapshotDigest',
            p_snapshots[v_position], (v_envelope ->> 'eventId')::uuid)
        on conflict do nothing;
        if not found then
            raise exception using errcode = 'OW001', message = 'this version of the dimension is there',
                detail = 'settlement_input';
        end if;
        insert into metering.event_source (event_type, source_fact_key, event_id)
        values (v_envelope ->> 'eventType', v_snapshot ->> 'settlementInputSnapshotRef',
            (v_envelope ->> 'eventId')::uuid)
        on conflict do nothing;
        if not found then
            raise exception using errcode = 'OW001', message = 'the snapshot or the event is published already';
        end if;
        insert into metering.settlement_pointer as p (settlement_dimension_id, execution_attempt_id,
            charge_dimension_key, settlement_input_state_version, settlement_input_snapshot_ref)
        values (v_dimension, p_attempt, v_snapshot ->> 'chargeDimensionKey', v_version,
            v_snapshot ->> 'settlementInputSnapshotRef')
        on conflict (settlement_dimension_id) do update
        set settlement_input_state_version = excluded.settlement_input_state_version,
            settlement_input_snapshot_ref = excluded.settlement_input_snapshot_ref
        where p.settlement_input_state_version = excluded.settlement_input_state_version - 1;
        if not found then
            raise exception using errcode = 'OW002', message = 'the current snapshot of the dimension is another one';
        end if;
    end loop;
    if cardinality(p_envelopes) > 0 then
        perform seapost.outbox_append_v1(p_envelopes);
    end if;
end $$;
