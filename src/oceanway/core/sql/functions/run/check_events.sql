-- Purpose: that the two events of an admission are about its manifest: same tenant, account, reservation and run in all
--   three, one aggregate each at revision 1, and the run as the cause of the wallet (REF-15).
-- Locks: none.
-- Errors: OW003 something differs.
create or replace function core.run_check_events(p_manifest jsonb, p_run jsonb, p_wallet jsonb)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_tenant constant jsonb := jsonb_strip_nulls(jsonb_build_object(
        'tenantKind', p_manifest -> 'tenantKind', 'tenantId', p_manifest -> 'tenantId',
        'workspaceId', p_manifest -> 'workspaceId', 'projectId', p_manifest -> 'projectId'));
    v_steps jsonb;
begin
    if (p_run -> 'tenant', p_wallet -> 'tenant') is distinct from (v_tenant, v_tenant)
        or (p_run #>> '{aggregate,id}', p_run #>> '{aggregate,revision}') is distinct from (p_manifest ->> 'runId', '1')
        or (p_wallet #>> '{aggregate,id}', p_wallet #>> '{aggregate,revision}')
            is distinct from (p_manifest ->> 'billingReservationId', '1')
        or p_wallet #>> '{correlation,causationId}' is distinct from p_run ->> 'eventId' then
        raise exception using errcode = 'OW003', message = 'tenant, aggregate or cause of an event is not that of the admission';
    end if;
    select jsonb_agg(s.step -> 'runStepId' order by s.position) into v_steps
    from jsonb_array_elements(p_manifest -> 'steps') with ordinality as s (step, position);
    if p_run #> '{payload,runStepIds}' is distinct from v_steps then
        raise exception using errcode = 'OW003', message = 'the event names other steps than the manifest';
    end if;
end $$;
