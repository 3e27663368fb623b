-- Purpose: ends the shadow claim of a version: nobody feeds it until somebody claims it again. What was in flight has ended.
-- Locks: the advisory lock "projection claim" of the version, exclusive, to the end of the transaction: call it with a
-- lock_timeout; the version row.
-- Errors: SP013 argument.
create or replace function seapost.projection_pause_v1(p_name text, p_version text, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform seapost.projection_check_actor(p_actor);
    perform pg_advisory_xact_lock(seapost.projection_claim_key(p_name, p_version));
    update seapost.projection_version as v set claim_token = null
    where v.projection_name = p_name and v.projection_version = p_version and v.claim_token is not null;
    if found then
        perform seapost.audit_append(p_actor, 'projection.pause', p_name || '@' || p_version, null);
    end if;
end $$;
