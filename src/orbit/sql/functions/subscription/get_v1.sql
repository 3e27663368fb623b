-- Purpose: one subscription as HTTP shows it (TX-15).
-- Locks: none
-- Errors: OB001..OB004, OB016, OB005, OB017
create or replace function orbit.subscription_get_v1(p_token_sha256 bytea, p_subscription_id text)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return orbit.subscription_body(
        orbit.subscription_read(orbit.access_check(p_token_sha256, 'events:read'), p_subscription_id));
end $$;
