-- Purpose: takes over runs as core admitted them; from now on they can have attempts. A run that is known with the same
--   manifest is left alone.
-- Locks: the primary keys in order of the run.
-- Errors: OW001 the run or its reservation is known with another manifest.
-- Returns: how many are new.
create or replace function execution.run_open_v1(p_manifests bytea[])
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
    v_new integer := 0;
begin
    for v_item in
        select i.document, m.value, m.value ->> 'runId' as run_id
        from unnest(p_manifests) as i (document)
        cross join lateral (select convert_from(i.document, 'UTF8')::jsonb) as m (value)
        order by 3
    loop
        insert into execution.run_execution (run_id, billing_reservation_id, run_admission_manifest_ref,
            admission_digest, admission_document)
        values (v_item.run_id, v_item.value ->> 'billingReservationId', v_item.value ->> 'runAdmissionManifestRef',
            v_item.value ->> 'runAdmissionManifestDigest', v_item.document)
        on conflict do nothing;
        if found then
            v_new := v_new + 1;
        elsif not exists (
            select from execution.run_execution as r
            where r.run_id = v_item.run_id
              and r.run_admission_manifest_ref = v_item.value ->> 'runAdmissionManifestRef'
              and r.admission_digest = v_item.value ->> 'runAdmissionManifestDigest') then
            raise exception using errcode = 'OW001', message = 'the run or its reservation is known with another manifest';
        end if;
    end loop;
    return v_new;
end $$;
