-- Purpose: the cluster-wide roles of Seapost. Idempotent; a DBA may run it where the installer may not create roles.
-- None can log in: grant them to your own login roles. Time limits belong to sessions, so the pools set them; the
-- settings below serve whoever lets a login role inherit one of these names.
do $$
declare
    v_role text;
begin
    foreach v_role in array array[
        'seapost_owner', 'seapost_producer', 'seapost_dispatcher',
        'seapost_consumer', 'seapost_operator', 'seapost_auditor', 'seapost_verifier'
    ] loop
        if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role) then
            begin
                execute format('create role %I nologin', v_role);
            exception when duplicate_object or unique_violation then
                null;  -- another installer on this server made it a moment ago
            end;
        end if;
    end loop;
end $$;
