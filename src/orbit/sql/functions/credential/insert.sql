-- Purpose: writes a new credential and its audit row, and returns its id. Never touches another credential (AUT-08).
-- Locks: none.
-- Errors: OB026 the name, the actions or the digest.
create or replace function orbit.credential_insert(
    p_namespace_id text, p_application_id text, p_name text, p_token_sha256 bytea, p_actions text[], p_all_queues boolean,
    p_queue_ids text[], p_expires_at timestamptz, p_rotated_from text
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id text := orbit.id_new('cred');
begin
    perform orbit.access_check_name('credential', p_name);
    perform orbit.access_check_actions(p_actions);
    if p_token_sha256 is null or octet_length(p_token_sha256) <> 32 then
        raise exception using errcode = 'OB026', message = 'the digest of the token must have 32 bytes';
    end if;
    insert into orbit.credentials (credential_id, namespace_id, application_id, name, token_sha256, actions, all_queues,
        queue_ids, expires_at, rotated_from)
    values (v_id, p_namespace_id, p_application_id, p_name, p_token_sha256, p_actions, p_all_queues, p_queue_ids,
        p_expires_at, p_rotated_from);
    perform orbit.audit_write(p_namespace_id, null,
        case when p_rotated_from is null then 'credential.issued' else 'credential.rotated' end, 'credential', v_id,
        json_build_object('actions', p_actions, 'all_queues', p_all_queues, 'queue_ids', p_queue_ids));
    return v_id;
end $$;
