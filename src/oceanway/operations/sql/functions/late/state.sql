-- Purpose: the state of a late case as a function of what is known of it, so that no order of arrival matters (CASE-27).
-- Locks: none.
-- Errors: none.
create or replace function operations.late_state(p_request uuid, p_resolution uuid, p_effect uuid)
returns text
language sql
immutable
as $$
    select case
        when p_resolution is null then 'open'
        when p_request is not null and p_effect is not null then 'resolved'
        else 'pending_resolution' end
$$;
