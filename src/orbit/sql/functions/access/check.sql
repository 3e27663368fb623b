-- Purpose: who calls, and whether it may do this at all: the first four checks of AUT-11 in their order. Queue and owner
-- follow in the caller. Runs in the transaction of every operation, also of every claim and ACK (AUT-12), and reads
-- without a lock (LCK-06, LCK-07).
-- Locks: none.
-- Errors: OB001 token, OB002 namespace, OB003 application, OB004 action.
create or replace function orbit.access_check(p_token_sha256 bytea, p_action text)
returns orbit.credentials
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_credential orbit.credentials;
    v_namespace_enabled boolean;
    v_application_enabled boolean;
begin
    select c.* into v_credential from orbit.credentials as c where c.token_sha256 = p_token_sha256;
    if not found or v_credential.revoked_at <= clock_timestamp() or v_credential.expires_at <= clock_timestamp() then
        raise exception using errcode = 'OB001', message = 'the token is missing, unknown, expired or revoked';
    end if;
    v_namespace_enabled := (select n.enabled from orbit.namespaces as n where n.namespace_id = v_credential.namespace_id);
    if v_namespace_enabled is not true then
        raise exception using errcode = 'OB002', message = 'the namespace of the credential is disabled';
    end if;
    v_application_enabled := (
        select a.enabled from orbit.applications as a where a.application_id = v_credential.application_id);
    if v_application_enabled is not true then
        raise exception using errcode = 'OB003', message = 'the application of the credential is disabled';
    end if;
    if not p_action = any(v_credential.actions) then
        raise exception using errcode = 'OB004', message = format('the credential lacks the action %s', p_action);
    end if;
    return v_credential;
end $$;
