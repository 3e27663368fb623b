-- Purpose: whether the version that is read now has applied these events: for who wants to read what he wrote (F41). Answers
-- version and truth of one snapshot.
-- Locks: none.
-- Errors: SP013 argument.
create or replace function seapost.projection_applied_v1(p_name text, p_event_ids uuid[])
returns table (projection_version text, is_applied boolean)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    if p_event_ids is null or cardinality(p_event_ids) > 1000 then
        raise exception using errcode = 'SP013', message = 'p_event_ids must have at most 1000 items';
    end if;
    return query
    select p.projection_version, not exists (
        select from unnest(p_event_ids) as u (event_id)
        where not exists (select from seapost.inbox_receipt as i where i.consumer = v.receipt_key and i.event_id = u.event_id))
    from seapost.projection_pointer as p
    join seapost.projection_version as v
        on v.projection_name = p.projection_name and v.projection_version = p.projection_version
    where p.projection_name = p_name;
end $$;
