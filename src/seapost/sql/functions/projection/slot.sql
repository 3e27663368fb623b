-- Purpose: which of `p_slots` feeders takes the events of an aggregate; all of one aggregate have one.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_slot(p_kind text, p_id text, p_slots int)
returns int
language sql
immutable
as $$
    select ((hashtextextended(p_kind || '/' || p_id, 0) % p_slots + p_slots) % p_slots)::int
$$;
