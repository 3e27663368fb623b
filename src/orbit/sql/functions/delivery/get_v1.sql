-- Purpose: one delivery as HTTP shows it (TX-15).
-- Locks: none
-- Errors: OB001..OB004, OB016, OB005, OB017, OB023
create or replace function orbit.delivery_get_v1(p_token_sha256 bytea, p_subscription_id text, p_delivery_id text)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
begin
    perform orbit.subscription_read(orbit.access_check(p_token_sha256, 'events:read'), p_subscription_id);
    return orbit.delivery_body(orbit.delivery_read(p_subscription_id, p_delivery_id));
end $$;
