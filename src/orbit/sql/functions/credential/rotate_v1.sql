-- Purpose: replaces a credential by a new one with the same application, name, actions, scope and length of life; the old
-- one ends p_grace_seconds from now at the latest (OPS-04). The new one is another owner: subscriptions stay with the old
-- one (AUT-09). Returns the new one's body as JSON, without the token.
-- Locks: the old credential.
-- Errors: OB026 no such credential; it is revoked, has ended or was rotated already; the grace is out of range.
create or replace function orbit.credential_rotate_v1(
    p_credential_id text, p_token_sha256 bytea, p_grace_seconds integer default 0
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_old orbit.credentials;
    v_now timestamptz;
    v_id text;
begin
    if p_grace_seconds is null or p_grace_seconds not between 0 and 31536000 then
        raise exception using errcode = 'OB026', message = 'the grace is 0 seconds to 365 days';
    end if;
    select c.* into v_old from orbit.credentials as c where c.credential_id = p_credential_id for update;
    if not found then
        raise exception using errcode = 'OB026', message = 'there is no credential of this id';
    end if;
    v_now := clock_timestamp();
    if v_old.revoked_at is not null or v_old.expires_at <= v_now
        or exists (select from orbit.credentials as c where c.rotated_from = p_credential_id) then
        raise exception using errcode = 'OB026',
            message = 'the credential is revoked, has ended or was rotated already; issue a new one';
    end if;
    v_id := orbit.credential_insert(v_old.namespace_id, v_old.application_id, v_old.name, p_token_sha256, v_old.actions,
        v_old.all_queues, v_old.queue_ids, v_now + (v_old.expires_at - v_old.created_at), p_credential_id);
    update orbit.credentials as c
    set expires_at = least(c.expires_at, v_now + make_interval(secs => p_grace_seconds))
    where c.credential_id = p_credential_id;
    return orbit.credential_body(v_id);
end $$;
