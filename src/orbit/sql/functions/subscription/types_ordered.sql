-- Purpose: the frozen type set of a new subscription: nothing given means all four, the order is that of SUB-24.
-- Locks: none
-- Errors: OB026 for a type that is no result, stands twice, or is null (SUB-13)
create or replace function orbit.subscription_types_ordered(p_types text[])
returns text[]
language plpgsql
immutable
as $$
declare
    c_types constant text[] := array['task.succeeded', 'task.failed', 'task.cancelled', 'task.needs_review'];
begin
    if coalesce(cardinality(p_types), 0) = 0 then
        return c_types;
    end if;
    if not p_types <@ c_types
        or cardinality(p_types) <> (select count(distinct given) from unnest(p_types) as given) then
        raise exception using errcode = 'OB026', message = 'types must be different result types';
    end if;
    return array(select known from unnest(c_types) with ordinality as k (known, i) where known = any (p_types) order by k.i);
end $$;
