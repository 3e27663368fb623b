-- Purpose: writes the idempotency identity of a request, or finds the stored response of the one that came before
-- (IDM-08). A concurrent twin is waited for at the unique index. Null response: go on and call idempotency_end (the
-- guard at commit demands it).
-- Locks: the identity (a unique key, the first lock of its transaction).
-- Errors: OB015 the key belongs to another request.
create or replace function orbit.idempotency_begin(
    p_credential orbit.credentials, p_action text, p_target text, p_key text, p_request_sha256 text
)
returns table (identity text, response_status integer, response_json text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_identity text := orbit.idempotency_identity(
        p_credential.namespace_id, p_credential.credential_id, p_action, p_target, p_key);
    v_known orbit.idempotency_records;
begin
    insert into orbit.idempotency_records as i (identity_sha256, namespace_id, credential_id, action, request_sha256)
    values (v_identity, p_credential.namespace_id, p_credential.credential_id, p_action, p_request_sha256)
    on conflict (identity_sha256) do nothing;
    if found then
        return query select v_identity, null::integer, null::text;
        return;
    end if;
    select i.* into strict v_known from orbit.idempotency_records as i where i.identity_sha256 = v_identity;
    if v_known.request_sha256 <> p_request_sha256 then
        raise exception using errcode = 'OB015', message = 'the idempotency key was used for another request';
    end if;
    return query select v_identity, v_known.response_status, v_known.response_json;
end $$;
