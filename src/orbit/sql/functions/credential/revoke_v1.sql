-- Purpose: revokes a credential: every transaction that starts after the commit is refused (AUT-12). Again changes
-- nothing. Returns the id and the moment as JSON.
-- Locks: the credential.
-- Errors: OB026 no such credential.
create or replace function orbit.credential_revoke_v1(p_credential_id text)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_old orbit.credentials;
    v_revoked_at timestamptz;
begin
    select c.* into v_old from orbit.credentials as c where c.credential_id = p_credential_id for update;
    if not found then
        raise exception using errcode = 'OB026', message = 'there is no credential of this id';
    end if;
    v_revoked_at := coalesce(v_old.revoked_at, clock_timestamp());
    if v_old.revoked_at is null then
        update orbit.credentials as c set revoked_at = v_revoked_at where c.credential_id = p_credential_id;
        perform orbit.audit_write(v_old.namespace_id, null, 'credential.revoked', 'credential', p_credential_id,
            json_build_object('actions', v_old.actions, 'all_queues', v_old.all_queues, 'queue_ids', v_old.queue_ids));
    end if;
    return (select row_to_json(b)::text
            from (select p_credential_id as credential_id, orbit.time_text(v_revoked_at) as revoked_at) as b);
end $$;
