-- Purpose: starts the shadow claim of a version, or takes it over: from now on only the new token may feed it, and whatever
-- was in flight under the former one has ended (AMB-39, SEC-20). Starts the record of a rebuild; returns the token.
-- Locks: the advisory lock "projection claim" of the version, exclusive, to the end of the transaction: call it with a
-- lock_timeout; the version row.
-- Errors: SP013 argument, not registered, or retired; SP034 a switch holds the version.
create or replace function seapost.projection_claim_v1(p_name text, p_version text, p_actor text)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_token constant uuid := gen_random_uuid();
begin
    perform seapost.projection_check_actor(p_actor);
    perform pg_advisory_xact_lock(seapost.projection_claim_key(p_name, p_version));
    if exists (select from seapost.projection_cutover as c
               where c.projection_name = p_name and c.to_version = p_version and c.phase <> 'switched') then
        raise exception using errcode = 'SP034', message = 'a switch of the projection holds the shadow claim',
            detail = format('%s version %s', p_name, p_version);
    end if;
    update seapost.projection_version as v
    set claim_token = v_token, stalled_event_id = null, stalled_reason = null, stalled_at = null
    where v.projection_name = p_name and v.projection_version = p_version and v.state <> 'retired';
    if not found then
        raise exception using errcode = 'SP013', message = 'the projection version is not registered here, or is retired',
            detail = format('%s version %s', p_name, p_version);
    end if;
    insert into seapost.projection_rebuild as r (projection_name, projection_version, started_at, moved_at, expected_count)
    values (p_name, p_version, seapost.clock_now(), seapost.clock_now(), 0)
    on conflict (projection_name, projection_version) do nothing;
    perform seapost.audit_append(p_actor, 'projection.claim', p_name || '@' || p_version, null);
    return v_token;
end $$;
