-- Purpose: a resolution of one generation, applied by billing: kept even before its request, it ends its case and lets
--   the maximal contiguous chain of successors follow (TX-32, TX-34, CASE-11, CASE-22, AMB-13).
-- Locks: none of its own; `case_known_v1` has entered the event in this transaction.
-- Errors: OW001 another resolution of this generation; 23505 a second open case.
create or replace function operations.case_resolution_v1(
    p_version text, p_envelope bytea, p_cases jsonb, p_read jsonb, p_read_arguments bytea, p_read_answer bytea
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_fence constant text := v_payload ->> 'billingFinalizationFenceId';
    v_fact constant text := 'finalizationReconciliationResolutionApplied';
begin
    insert into operations.finalization_case_resolution (projection_version, fence_id, generation, operation_id, case_ref,
        event_id, identity_ref, identity_digest, fact_ref, fact_schema_version, fact_digest_algorithm_version,
        fact_digest, actor_workforce_principal_id)
    values (p_version, v_fence, (v_payload ->> 'reconciliationGeneration')::bigint, v_payload ->> 'runId',
        v_payload ->> 'reconciliationCaseRef', (v_event ->> 'eventId')::uuid,
        v_payload ->> 'finalizationCaseIdentityReservationRef', v_payload ->> 'finalizationCaseIdentityReservationDigest',
        v_payload ->> (v_fact || 'Ref'), v_payload ->> (v_fact || 'SchemaVersion'),
        v_payload ->> (v_fact || 'DigestAlgorithmVersion'), v_payload ->> (v_fact || 'Digest'),
        v_payload ->> 'actorWorkforcePrincipalId')
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = 'this generation has a resolution already';
    end if;
    perform operations.event_keep(p_version, v_event, p_envelope,
        jsonb_build_object('caseRef', v_payload ->> 'reconciliationCaseRef',
            'generation', v_payload -> 'reconciliationGeneration', 'action', v_payload ->> 'action',
            'actorWorkforcePrincipalId', v_payload ->> 'actorWorkforcePrincipalId'),
        array['fence', 'case'], array[v_fence, v_payload ->> 'reconciliationCaseRef']);
    perform operations.case_remember(p_read, p_read_arguments, p_read_answer);
    perform operations.case_materialise(p_version, v_fence, p_cases);
end $$;
