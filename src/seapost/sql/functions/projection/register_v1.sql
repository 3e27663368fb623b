-- Purpose: makes a version of a projection known, and returns its state: insert, or what is stored. The first version of a
-- projection is active at once, because there is nothing else to read; a later one is being built (REF-05).
-- Locks: the advisory lock "projection register" to the end of the transaction.
-- Errors: SP013 argument.
create or replace function seapost.projection_register_v1(p_name text, p_version text, p_actor text)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state text;
begin
    if p_actor is null or length(p_actor) not between 1 and 200 then
        raise exception using errcode = 'SP013', message = 'p_actor must have 1 to 200 characters';
    end if;
    if p_name is null or p_name !~ '^[a-z][a-z0-9_.-]{0,99}$'
       or p_version is null or length(p_version) > 32 or p_version !~ '^[0-9]+(\.[0-9]+)*$' then
        raise exception using errcode = 'SP013', message = 'p_name and p_version must name a projection and its version';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('seapost.projection.register', 0));
    select v.state into v_state from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version;
    if found then
        return v_state;
    end if;
    insert into seapost.projection_version (projection_name, projection_version, state, registered_at)
    values (p_name, p_version, case when exists (
            select from seapost.projection_version as v where v.projection_name = p_name) then 'building' else 'active' end,
        seapost.clock_now())
    returning state into v_state;
    if v_state = 'active' then
        insert into seapost.projection_pointer (projection_name, projection_version, switched_at)
        values (p_name, p_version, seapost.clock_now());
    end if;
    perform seapost.audit_append(p_actor, 'projection.register', p_name || '@' || p_version, null);
    return v_state;
end $$;
