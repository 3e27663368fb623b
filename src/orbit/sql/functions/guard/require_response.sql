-- Purpose: proves at commit that an idempotency identity has its stored response (IDM-11).
-- Locks: none.
-- Errors: 23514.
create or replace function orbit.guard_require_response()
returns trigger
language plpgsql
security definer  -- runs at commit, outside the function that wrote the row
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    perform from orbit.idempotency_records as i
    where i.identity_sha256 = new.identity_sha256 and i.response_status is not null and i.response_json is not null;
    if not found then
        raise exception using errcode = '23514', message = 'orbit: an idempotency identity has no response';
    end if;
    return null;
end $$;
