-- Purpose: the rule for what a semantic check says of itself.
-- Locks: none.
-- Errors: SP013 argument.
create or replace function seapost.completeness_check_semantic(p_semantic jsonb)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_semantic is null or jsonb_typeof(p_semantic) <> 'object'
       or p_semantic ->> 'state' not in ('passed', 'failed') or p_semantic ->> 'state' is null
       or not coalesce(length(p_semantic ->> 'id') between 1 and 200, false)
       or not coalesce(length(p_semantic ->> 'version') between 1 and 32, false)
       or not coalesce(p_semantic ->> 'digest' ~ '^[0-9a-f]{64}$', false)
       or not coalesce(p_semantic ->> 'resultDigest' ~ '^[0-9a-f]{64}$', false) then
        raise exception using errcode = 'SP013', message = 'p_semantic must be {id, version, digest, state, resultDigest}';
    end if;
end $$;
