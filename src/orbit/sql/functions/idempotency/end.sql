-- Purpose: stores the response of the request whose identity this transaction wrote (IDM-01).
-- Locks: none (the identity row is this transaction's own).
-- Errors: 23514 the identity is not open.
create or replace function orbit.idempotency_end(p_identity text, p_status integer, p_response_json text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    update orbit.idempotency_records as i set response_status = p_status, response_json = p_response_json
    where i.identity_sha256 = p_identity and i.response_status is null;
    if not found then
        raise exception using errcode = '23514', message = 'orbit: the idempotency identity is not open';
    end if;
end $$;
