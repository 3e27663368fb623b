-- Purpose: accepts an observation, the second source of a projection: insert, or the same one again (REF-52, ORD-06).
-- Locks: the row it inserts.
-- Errors: SP013 argument; SP002 the identifier is known with other content.
create or replace function seapost.observation_accept_v1(p_observation_id uuid, p_projection_name text, p_envelope bytea)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_observation_id is null or p_projection_name is null or p_projection_name !~ '^[a-z][a-z0-9_.-]{0,99}$'
       or p_envelope is null or octet_length(p_envelope) > 1048576 then
        raise exception using errcode = 'SP013', message = 'an observation needs its identifier, its projection and an envelope of at most 1 MiB';
    end if;
    insert into seapost.accepted_observation (observation_id, accepted_at, projection_name, envelope)
    values (p_observation_id, seapost.clock_now(), p_projection_name, p_envelope)
    on conflict (observation_id) do nothing;
    if found then
        return true;
    end if;
    if not exists (select from seapost.accepted_observation as o where o.observation_id = p_observation_id
                   and o.projection_name = p_projection_name and o.envelope = p_envelope) then
        raise exception using errcode = 'SP002', message = 'the observation is known with other content',
            detail = 'observation ' || p_observation_id;
    end if;
    return false;
end $$;
