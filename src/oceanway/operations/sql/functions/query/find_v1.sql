-- Purpose: the operations that one exact identifier belongs to; no prefix, no pattern, no list of everything (REF-58).
--   Only operations whose run event is there are found.
-- Locks: none.
-- Errors: OW003 an unknown kind of identifier, or a limit out of range.
create or replace function operations.query_find_v1(p_version text, p_kind text, p_value text, p_limit integer)
returns table (operation_id text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception using errcode = 'OW003', message = 'a query returns 1 to 1000 operations';
    end if;
    if p_kind = 'event' then
        return query
        select t.operation_id from operations.timeline_entry as t
        join operations.operation_summary as s
            on s.projection_version = t.projection_version and s.operation_id = t.operation_id
        where t.event_id = p_value::uuid and t.projection_version = p_version;
        return;
    end if;
    if p_kind not in ('run', 'reservation', 'account', 'step', 'attempt', 'dimension', 'fence', 'case') then
        raise exception using errcode = 'OW003', message = 'there is no such kind of identifier';
    end if;
    return query
    select i.operation_id from operations.exact_identifier_index as i
    join operations.operation_summary as s
        on s.projection_version = i.projection_version and s.operation_id = i.operation_id
    where i.projection_version = p_version and i.kind = p_kind
      and i.value_digest = operations.query_value_digest(p_kind, p_value)
    order by i.operation_id limit p_limit;
end $$;
