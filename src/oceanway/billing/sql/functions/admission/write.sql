-- Purpose: writes one admission: reservation, fence of revision 1, the first work with its trigger, and the booking of
--   the reservation (REF-16, AMB-05); the caller charges the account. The same admission again changes nothing.
-- Locks: the primary keys of reservation and fence.
-- Errors: OW001 the reservation or the run has another admission; OW003 the documents do not belong together.
-- Returns: whether it is new.
create or replace function billing.admission_write(
    p_manifest bytea, p_amount numeric, p_currency text, p_trigger bytea, p_work bytea
)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_admitted constant jsonb := convert_from(p_manifest, 'UTF8')::jsonb;
    v_trigger constant jsonb := convert_from(p_trigger, 'UTF8')::jsonb;
    v_reservation constant text := v_admitted ->> 'billingReservationId';
    v_fence constant text := v_trigger ->> 'billingFinalizationFenceId';
begin
    if ((v_trigger ->> 'finalizationFenceRevision')::bigint, (v_trigger ->> 'workGeneration')::bigint,
            v_trigger #>> '{closureWatermark,state}', v_trigger #>> '{resolutionWatermark,state}',
            v_trigger -> 'settlementWatermarks')
        is distinct from (1, 1, 'none', 'none', '[]'::jsonb) then
        raise exception using errcode = 'OW003', message = 'the first trigger has revision 1, generation 1 and no watermark';
    end if;
    insert into billing.reservation (billing_reservation_id, billing_account_id, run_id, tenant_kind, tenant_id,
        workspace_id, project_id, currency, reserved_amount, run_admission_manifest_ref, run_admission_manifest_digest,
        run_admission_manifest)
    values (v_reservation, v_admitted ->> 'billingAccountId', v_admitted ->> 'runId', v_admitted ->> 'tenantKind',
        v_admitted ->> 'tenantId', v_admitted ->> 'workspaceId', v_admitted ->> 'projectId', p_currency, p_amount,
        v_admitted ->> 'runAdmissionManifestRef', v_admitted ->> 'runAdmissionManifestDigest', p_manifest)
    on conflict do nothing;
    if not found then
        perform from billing.reservation as r
        where r.billing_reservation_id = v_reservation
          and r.run_admission_manifest_ref = v_admitted ->> 'runAdmissionManifestRef'
          and r.run_admission_manifest_digest = v_admitted ->> 'runAdmissionManifestDigest'
          and (r.reserved_amount, r.currency) = (p_amount, p_currency);
        if not found then
            raise exception using errcode = 'OW001', message = 'the reservation or the run has another admission';
        end if;
        return false;
    end if;
    insert into billing.finalization_fence (billing_finalization_fence_id, billing_reservation_id, run_id,
        fence_revision, latest_work_generation, state, active_work_ref)
    values (v_fence, v_reservation, v_admitted ->> 'runId', 1, 1, 'pending',
        convert_from(p_work, 'UTF8')::jsonb ->> 'billingFinalizationWorkRef');
    perform billing.finalization_work_write(p_trigger, p_work);
    insert into billing.ledger_entry (billing_reservation_id, billing_account_id, kind, amount, source_ref)
    values (v_reservation, v_admitted ->> 'billingAccountId', 'reserve', p_amount,
        v_admitted ->> 'runAdmissionManifestRef');
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values ('billing', 'reservation.admitted', v_reservation, v_admitted ->> 'runAdmissionManifestDigest');
    return true;
end $$;
