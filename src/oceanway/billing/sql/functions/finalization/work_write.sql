-- Purpose: stores a trigger and the work that it orders; the caller has decided that they are the next generation.
-- Locks: the primary keys.
-- Errors: 23505 the generation has a work, which the caller's comparison of revisions prevents; OW003 the work
--   does not belong to the trigger.
create or replace function billing.finalization_work_write(p_trigger bytea, p_work bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_trigger constant jsonb := convert_from(p_trigger, 'UTF8')::jsonb;
    v_work constant jsonb := convert_from(p_work, 'UTF8')::jsonb;
begin
    if (v_work ->> 'billingFinalizationFenceId', v_work -> 'workGeneration',
            v_work ->> 'billingFinalizationTriggerSnapshotRef', v_work ->> 'billingFinalizationTriggerSnapshotDigest')
        is distinct from (v_trigger ->> 'billingFinalizationFenceId', v_trigger -> 'workGeneration',
            v_trigger ->> 'billingFinalizationTriggerSnapshotRef',
            v_trigger ->> 'billingFinalizationTriggerSnapshotDigest') then
        raise exception using errcode = 'OW003', message = 'the work does not belong to the trigger';
    end if;
    insert into billing.finalization_trigger (billing_finalization_trigger_snapshot_ref, billing_finalization_fence_id,
        work_generation, digest, document)
    values (v_trigger ->> 'billingFinalizationTriggerSnapshotRef', v_trigger ->> 'billingFinalizationFenceId',
        (v_trigger ->> 'workGeneration')::bigint, v_trigger ->> 'billingFinalizationTriggerSnapshotDigest', p_trigger);
    insert into billing.finalization_work (billing_finalization_work_ref, billing_finalization_operation_id,
        billing_finalization_fence_id, work_generation, billing_finalization_trigger_snapshot_ref, digest, document)
    values (v_work ->> 'billingFinalizationWorkRef', v_work ->> 'billingFinalizationOperationId',
        v_work ->> 'billingFinalizationFenceId', (v_work ->> 'workGeneration')::bigint,
        v_work ->> 'billingFinalizationTriggerSnapshotRef', v_work ->> 'billingFinalizationWorkDigest', p_work);
end $$;
