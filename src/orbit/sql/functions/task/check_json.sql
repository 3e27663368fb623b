-- Purpose: refuses a task input or a result that is not exactly one JSON value of at most 1 MiB (SRC-20). The text is
--   looked at and never changed: `json`, not `jsonb`, which would refuse \u0000. The server has checked it before, its
--   depth too; here nothing else gets in. Called before the first lock.
-- Locks: none
-- Errors: OB026 no text or too large, 22P02 not one JSON value, 54001 nested too deeply
create or replace function orbit.task_check_json(p_member text, p_text text)
returns void
language plpgsql
immutable
as $$
begin
    if p_text is null or octet_length(p_text) > 1048576 then
        raise exception using errcode = 'OB026', message = format('%s is required and has at most 1048576 bytes', p_member);
    end if;
    perform p_text::json;
end $$;
