-- Purpose: makes one registered delivery set the active one and retires the former, atomically (SET-17, SET-30, SET-31).
-- Waits for every append in flight and holds back new ones to its commit. Call it with a lock_timeout. Activating the
-- active version again changes nothing.
-- Locks: the advisory lock "delivery set", exclusive, to the end of the transaction; the two version rows.
-- Errors: SP008 not registered under exactly this version and digest, SP013 argument, SP021 retired already.
create or replace function seapost.delivery_set_activate_v1(p_delivery_set_version text, p_definition_digest bytea, p_actor text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_wanted seapost.delivery_set_version;
begin
    if p_actor is null or length(p_actor) not between 1 and 200 then
        raise exception using errcode = 'SP013', message = 'p_actor must have 1 to 200 characters';
    end if;
    perform pg_advisory_xact_lock(seapost.delivery_set_lock_key());
    select v.* into v_wanted from seapost.delivery_set_version as v
    where v.delivery_set_version = p_delivery_set_version and v.definition_digest = p_definition_digest;
    if not found then
        raise exception using errcode = 'SP008',
            message = format('delivery set version %s is not registered with this digest', p_delivery_set_version);
    end if;
    if v_wanted.status = 'active' then
        return;
    end if;
    if v_wanted.status = 'retired' then
        raise exception using errcode = 'SP021', message = 'a retired delivery set cannot become active again',
            detail = format('version %s; register the same routes as a new version', p_delivery_set_version);
    end if;
    update seapost.delivery_set_version as v set status = 'retired' where v.status = 'active';
    update seapost.delivery_set_version as v set status = 'active', activated_at = seapost.clock_now()
    where v.definition_id = v_wanted.definition_id;
    perform seapost.audit_append(p_actor, 'delivery_set.activate', p_delivery_set_version, p_definition_digest);
end $$;
