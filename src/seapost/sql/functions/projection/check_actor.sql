-- Purpose: the rule for the name of who asks.
-- Locks: none.
-- Errors: SP013 argument.
create or replace function seapost.projection_check_actor(p_actor text)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_actor is null or length(p_actor) not between 1 and 200 then
        raise exception using errcode = 'SP013', message = 'p_actor must have 1 to 200 characters';
    end if;
end $$;
