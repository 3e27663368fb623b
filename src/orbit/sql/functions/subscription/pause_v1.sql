-- Purpose: stops new materialisation and new claims of a subscription, nothing else (PAU-01); acknowledgements go on (PAU-03).
-- Locks: idempotency identity, subscription row
-- Errors: those of orbit.subscription_move
create or replace function orbit.subscription_pause_v1(
    p_token_sha256 bytea, p_subscription_id text, p_expected_revision bigint, p_reason text, p_idempotency_key text,
    p_request_sha256 text
)
returns table (response_status integer, response_json text, replayed boolean, wake_subscription_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query select * from orbit.subscription_move(p_token_sha256, p_subscription_id, p_expected_revision, p_reason,
        p_idempotency_key, p_request_sha256, 'pause', 'paused', 'PAUSED');
end $$;
