-- Purpose: the checks of AUT-11 up to the action, for a WebSocket handshake, which names no subscription yet (WSS-03).
-- Locks: none
-- Errors: OB001..OB004
create or replace function orbit.access_check_v1(p_token_sha256 bytea, p_action text)
returns void
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform orbit.access_check(p_token_sha256, p_action);
end $$;
