-- Purpose: the cluster-wide roles of metering, and what its owner needs from the kernel of this database: to append events
-- and to refer to them by a foreign key (AMB-41). Idempotent; a DBA may run it where the installer may not create roles.
-- None can log in: grant them to your own login roles.
do $$
declare
    v_role text;
begin
    foreach v_role in array array[
        'oceanway_metering_owner', 'oceanway_metering_service', 'oceanway_metering_consumer', 'oceanway_metering_reader',
        'oceanway_auditor'
    ] loop
        if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role) then
            begin
                execute format('create role %I nologin', v_role);
            exception when duplicate_object or unique_violation then
                null;  -- another installer on this server made it a moment ago
            end;
        end if;
    end loop;
    if not pg_catalog.pg_has_role('oceanway_metering_owner', 'seapost_producer', 'member') then
        grant seapost_producer to oceanway_metering_owner;
    end if;
    if to_regclass('seapost.event') is not null then
        grant usage on schema seapost to oceanway_metering_owner;
        grant references on seapost.event to oceanway_metering_owner;
    end if;
end $$;
