-- Purpose: writes one admission: run, reservation, and which events announce them; the caller appends the events. The same
--   admission again changes nothing.
-- Locks: the primary keys of run and reservation.
-- Errors: OW001 the run or the reservation has another admission; OW003 the documents do not belong together.
-- Returns: whether it is new.
create or replace function core.run_write(p_manifest bytea, p_run_event bytea, p_wallet_event bytea)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_manifest constant jsonb := convert_from(p_manifest, 'UTF8')::jsonb;
    v_wallet constant jsonb := convert_from(p_wallet_event, 'UTF8')::jsonb;
    v_run_id constant text := v_manifest ->> 'runId';
    v_reservation constant text := v_manifest ->> 'billingReservationId';
    v_amount constant numeric := (v_wallet #>> '{payload,reservedAmount}')::numeric;
    v_subject constant text[] := array['tenantKind', 'tenantId', 'workspaceId', 'projectId', 'billingAccountId',
        'billingReservationId', 'runId'];
begin
    insert into core.run (run_id, billing_reservation_id, billing_account_id, tenant_kind, tenant_id, workspace_id,
        project_id, run_admission_manifest_ref, digest, document, run_created_event_id)
    values (v_run_id, v_reservation, v_manifest ->> 'billingAccountId', v_manifest ->> 'tenantKind',
        v_manifest ->> 'tenantId', v_manifest ->> 'workspaceId', v_manifest ->> 'projectId',
        v_manifest ->> 'runAdmissionManifestRef', v_manifest ->> 'runAdmissionManifestDigest', p_manifest,
        (convert_from(p_run_event, 'UTF8')::jsonb ->> 'eventId')::uuid)
    on conflict do nothing;
    if not found then
        perform from core.run as r
        join core.wallet_reservation as w using (run_id, billing_reservation_id)
        where r.run_id = v_run_id and r.run_admission_manifest_ref = v_manifest ->> 'runAdmissionManifestRef'
          and r.digest = v_manifest ->> 'runAdmissionManifestDigest'
          and (w.reserved_amount, w.currency) = (v_amount, v_wallet #>> '{payload,currency}');
        if not found then
            raise exception using errcode = 'OW001', message = 'the run or the reservation has another admission';
        end if;
        return false;
    end if;
    perform core.run_check_events(v_manifest, convert_from(p_run_event, 'UTF8')::jsonb, v_wallet);
    perform core.event_bind(p_run_event, 'run.created@2.0', v_manifest ->> 'runAdmissionManifestRef', v_manifest,
        v_subject || array['runAdmissionManifestRef', 'runAdmissionManifestSchemaVersion',
            'runAdmissionManifestDigestAlgorithmVersion', 'runAdmissionManifestDigest']);
    insert into core.wallet_reservation (billing_reservation_id, run_id, reserved_amount, currency,
        reservation_state_version, wallet_reserved_event_id)
    values (v_reservation, v_run_id, v_amount, v_wallet #>> '{payload,currency}',
        (v_wallet #>> '{payload,reservationStateVersion}')::bigint, (v_wallet ->> 'eventId')::uuid);
    perform core.event_bind(p_wallet_event, 'wallet.reserved@2.0', v_reservation, v_manifest, v_subject);
    return true;
end $$;
