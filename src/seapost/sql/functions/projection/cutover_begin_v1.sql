-- Purpose: begins the switch of a projection to a version, or finds the same one again: pauses the shadow claim and takes the
-- durable lock that every later step holds (ORD-15, SET-30, REF-05). `p_producers`: the other databases that activate the
-- delivery set after this one (AMB-03). Returns the token of the switch.
-- Locks: the advisory lock "projection register"; the cutover row.
-- Errors: SP013 argument; SP032 another switch is under way; SP033 the version or the delivery set is not fit for it.
create or replace function seapost.projection_cutover_begin_v1(
    p_name text, p_version text, p_delivery_set_version text, p_definition_digest bytea, p_producers text[], p_actor text
)
returns uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_cutover seapost.projection_cutover;
    v_from text;
    v_state text;
    v_problem text;
    v_token constant uuid := gen_random_uuid();
begin
    perform seapost.projection_check_actor(p_actor);
    perform pg_advisory_xact_lock(hashtextextended('seapost.projection.register', 0));
    select c.* into v_cutover from seapost.projection_cutover as c where c.projection_name = p_name for update;
    if found then
        if (v_cutover.to_version, v_cutover.delivery_set_version, v_cutover.definition_digest)
           is distinct from (p_version, p_delivery_set_version, p_definition_digest) then
            raise exception using errcode = 'SP032', message = 'another switch of the projection is under way',
                detail = format('to version %s, in phase %s', v_cutover.to_version, v_cutover.phase);
        end if;
        return v_cutover.token;
    end if;
    v_from := seapost.projection_current(p_name);
    select v.state into v_state from seapost.projection_version as v
    where v.projection_name = p_name and v.projection_version = p_version and v.receipt_key is not null;
    v_problem := case
        when v_from is null or v_state is null then 'the projection or the version is not registered here'
        when v_state not in ('shadow', 'draining') then format('the version is %s; it must follow as a shadow first', v_state)
        else seapost.projection_definition_problem(p_name, p_version, p_delivery_set_version, p_definition_digest) end;
    if v_problem is not null then
        raise exception using errcode = 'SP033', message = 'the version cannot be switched to', detail = v_problem;
    end if;
    update seapost.projection_version as v set claim_token = null where v.projection_name = p_name and v.projection_version = p_version;
    insert into seapost.projection_cutover (projection_name, token, phase, from_version, to_version, delivery_set_version,
        definition_digest, started_at, phase_at, actor, producers)
    values (p_name, v_token, 'draining_shadow', v_from, p_version, p_delivery_set_version, p_definition_digest,
        seapost.clock_now(), seapost.clock_now(), p_actor, coalesce(p_producers, '{}'));
    perform seapost.audit_append(p_actor, 'projection.cutover.begin', p_name || '@' || p_version, p_definition_digest);
    return v_token;
end $$;
