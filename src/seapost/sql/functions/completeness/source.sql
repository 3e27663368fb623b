-- Purpose: the events that a version has to fold: how many, and the digest of the set of their identifiers and digests. While
-- a switch has frozen a candidate for the version, these are the candidate's members (ORD-16).
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_source(p_name text, p_version text)
returns table (member_count bigint, set_digest text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select (c.document #>> '{members,count}')::bigint, c.document #>> '{members,setDigest}'
    from seapost.projection_cutover as k
    cross join lateral (select convert_from(k.candidate, 'UTF8')::jsonb as document) as c
    where k.projection_name = p_name and k.to_version = p_version and k.candidate is not null and k.phase <> 'switched';
    if found then
        return;
    end if;
    return query
    select count(*), seapost.completeness_set_digest(count(*),
        sum(hash_record_extended(row (s.event_id, s.digest), 1)::numeric), sum(hash_record_extended(row (s.event_id, s.digest), 2)::numeric))
    from seapost.source_events as s
    join seapost.projection_support as u on u.projection_name = p_name and u.projection_version = p_version
     and u.event_type = s.event_type and u.schema_version = s.schema_version;
end $$;
