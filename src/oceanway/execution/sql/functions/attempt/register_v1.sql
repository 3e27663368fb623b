-- Purpose: registers attempts of open runs, each under a manifest that never changes (REF-18). The same manifest again
--   changes nothing, also when the run has closed since.
-- Locks: the runs in order, shared, so that a closure waits for registrations in flight and none follows it; the primary
--   keys in order of the attempt.
-- Errors: OW001 the attempt has another manifest; OW003 it does not belong to its run; OW004 no such run; OW005 the run is
--   closed.
-- Returns: how many are new.
create or replace function execution.attempt_register_v1(p_manifests bytea[])
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
    v_run execution.run_execution;
    v_new integer := 0;
begin
    for v_item in
        select i.document, m.value, m.value ->> 'runId' as run_id, m.value ->> 'executionAttemptId' as attempt_id
        from unnest(p_manifests) as i (document)
        cross join lateral (select convert_from(i.document, 'UTF8')::jsonb) as m (value)
        order by 3, 4
    loop
        if v_run.run_id is distinct from v_item.run_id then
            select r.* into v_run from execution.run_execution as r where r.run_id = v_item.run_id for share;
            if not found then
                raise exception using errcode = 'OW004', message = 'there is no such run';
            end if;
        end if;
        if exists (
            select from execution.attempt as a
            where a.execution_attempt_id = v_item.attempt_id
              and a.attempt_execution_manifest_ref = v_item.value ->> 'attemptExecutionManifestRef'
              and a.digest = v_item.value ->> 'attemptExecutionManifestDigest') then
            continue;
        end if;
        if v_run.attempt_set_state = 'closed' then
            raise exception using errcode = 'OW005', message = 'the run is closed: it gets no further attempt';
        end if;
        perform execution.attempt_check(v_item.value, convert_from(v_run.admission_document, 'UTF8')::jsonb);
        insert into execution.attempt (execution_attempt_id, run_id, run_step_id, gateway_bound,
            attempt_execution_manifest_ref, digest, document)
        values (v_item.attempt_id, v_item.run_id, v_item.value ->> 'runStepId',
            v_item.value #>> '{gatewayBinding,state}' = 'bound', v_item.value ->> 'attemptExecutionManifestRef',
            v_item.value ->> 'attemptExecutionManifestDigest', v_item.document)
        on conflict do nothing;
        if not found and not exists (
            select from execution.attempt as a
            where a.execution_attempt_id = v_item.attempt_id
              and a.attempt_execution_manifest_ref = v_item.value ->> 'attemptExecutionManifestRef'
              and a.digest = v_item.value ->> 'attemptExecutionManifestDigest') then
            raise exception using errcode = 'OW001', message = 'the attempt has another manifest';
        end if;
        v_new := v_new + 1;
    end loop;
    return v_new;
end $$;
