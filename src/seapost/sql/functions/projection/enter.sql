-- Purpose: the gate of every transaction that applies events to a version of a projection. `p_token` is null for events that
-- deliveries brought, else the shadow claim they were fed under (AMB-39). While a switch has frozen a candidate, the version
-- it leads to applies only what is inside that border, and so does the version it leaves, so that readers never go back in time
-- (F41); while the switch drains the version it leaves, that one applies nothing (ORD-15 to ORD-18, AMB-43).
-- Locks: the advisory lock "projection claim" of the version, shared, to the end of the transaction: whoever takes it
-- exclusively has waited for everything in flight.
-- Errors: SP013 not registered, or retired; SP030 the claim was taken over or paused; SP031 outside the frozen border; SP034 a
-- switch is draining this version.
create or replace function seapost.projection_enter(p_name text, p_version text, p_token uuid, p_event_ids uuid[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_claim uuid;
    v_cutover record;
begin
    perform pg_advisory_xact_lock_shared(seapost.projection_claim_key(p_name, p_version));
    perform set_config('seapost.projection', p_name || '@' || p_version, true);  -- what the watch on the view's tables counts
    select v.claim_token into v_claim from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version and v.state <> 'retired';
    if not found then
        raise exception using errcode = 'SP013', message = 'the projection version is not registered here, or is retired',
            detail = format('%s version %s', p_name, p_version);
    end if;
    if p_token is not null and v_claim is distinct from p_token then
        raise exception using errcode = 'SP030', message = 'the shadow claim was taken over or paused',
            detail = format('%s version %s', p_name, p_version);
    end if;
    select c.phase, c.from_version, c.to_version into v_cutover
    from seapost.projection_cutover as c where c.projection_name = p_name and c.phase <> 'switched';
    if not found then
        return;
    end if;
    if v_cutover.from_version = p_version and v_cutover.phase = 'draining_active' then
        raise exception using errcode = 'SP034', message = 'a switch of the projection is draining this version',
            detail = format('%s version %s', p_name, p_version);
    end if;
    if v_cutover.from_version = p_version and v_cutover.phase = 'catching_up' and not seapost.projection_within_candidate(
            p_name, v_cutover.to_version, p_event_ids) then
        raise exception using errcode = 'SP034', message = 'a switch of the projection has frozen what this version may apply',
            detail = format('%s version %s', p_name, p_version);
    end if;
    if v_cutover.to_version = p_version and (p_event_ids is null or exists (
        select from unnest(p_event_ids) as u (event_id) where not exists (
            select from seapost.projection_candidate_rest as r
            where r.projection_name = p_name and r.event_id = u.event_id))) then
        if p_token is null then
            raise exception using errcode = 'SP034', message = 'a switch of the projection has frozen this version',
                detail = format('%s version %s', p_name, p_version);
        end if;
        raise exception using errcode = 'SP031', message = 'an event lies outside the frozen candidate of the switch',
            detail = format('%s version %s', p_name, p_version);
    end if;
end $$;
