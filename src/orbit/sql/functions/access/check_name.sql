-- Purpose: refuses a name of a namespace, application, credential or queue that is not 1 to 64 letters, digits, '.', '_'
-- and '-', beginning with a letter or digit.
-- Locks: none.
-- Errors: OB026.
create or replace function orbit.access_check_name(p_member text, p_name text)
returns void
language plpgsql
immutable
as $$
begin
    if p_name is null or p_name !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' then
        raise exception using errcode = 'OB026',
            message = format('%s must be 1 to 64 letters, digits, ".", "_" or "-", beginning with a letter or digit', p_member);
    end if;
end $$;
