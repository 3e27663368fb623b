-- Purpose: the observations that a version has no receipt of, oldest first.
-- Locks: none.
-- Errors: SP013 argument.
create or replace function seapost.observation_feed_v1(p_name text, p_version text, p_limit int)
returns table (observation_id uuid, envelope bytea, digest bytea)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if p_limit not between 1 and 10000 then
        raise exception using errcode = 'SP013', message = 'p_limit must be 1 to 10000';
    end if;
    return query
    select o.observation_id, o.envelope, o.digest from seapost.accepted_observation as o
    where o.projection_name = p_name and not exists (
        select from seapost.observation_receipt as r where r.projection_name = p_name and r.projection_version = p_version
          and r.observation_id = o.observation_id)
    order by o.accepted_at, o.observation_id limit p_limit;
end $$;
