-- Purpose: the cluster-wide roles of operations. Idempotent; a DBA may run it where the installer may not create roles.
-- None can log in: grant them to your own login roles.
do $$
declare
    v_role text;
begin
    foreach v_role in array array[
        'oceanway_operations_owner', 'oceanway_operations_service', 'oceanway_operations_consumer',
        'oceanway_operations_reader', 'oceanway_auditor'
    ] loop
        if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role) then
            begin
                execute format('create role %I nologin', v_role);
            exception when duplicate_object or unique_violation then
                null;  -- another installer on this server made it a moment ago
            end;
        end if;
    end loop;
    if not pg_catalog.pg_has_role('oceanway_operations_owner', 'seapost_auditor', 'member') then
        grant seapost_auditor to oceanway_operations_owner;  -- the query shows the local outbox (OPS-17)
    end if;
end $$;
