-- Purpose: the arrays of a settle call are parallel, not null and bounded.
-- Locks: none.
-- Errors: SP013.
create or replace function seapost.delivery_check_arguments(p_destination text, p_event_ids uuid[], variadic p_lengths int[])
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_destination is null or p_event_ids is null or cardinality(p_event_ids) > 10000
       or exists (select from unnest(p_lengths) as l (n) where n is distinct from cardinality(p_event_ids)) then
        raise exception using errcode = 'SP013', message = 'the arrays of a call must be parallel, with at most 10000 items';
    end if;
end $$;
