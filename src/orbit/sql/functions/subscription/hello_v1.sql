-- Purpose: what a connection must know of its subscription before the first pull (TX-16, WSS-06); changes nothing.
-- Locks: none
-- Errors: OB001..OB004, OB016, OB005, OB017
create or replace function orbit.subscription_hello_v1(p_token_sha256 bytea, p_subscription_id text)
returns table (
    subscription_id text, namespace_id text, status text, revision bigint, queue_id text, types text[],
    max_pending integer, server_time timestamptz
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    s orbit.event_subscriptions :=
        orbit.subscription_read(orbit.access_check(p_token_sha256, 'events:consume'), p_subscription_id);
begin
    return query select s.subscription_id::text, s.namespace_id::text, s.status::text, s.revision, s.queue_id::text,
        s.types, s.max_pending, clock_timestamp();
end $$;
