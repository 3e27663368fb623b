-- Purpose: lets a paused subscription be claimed again; its backlog is where it was (PAU-04). Waiting pulls are to be woken.
-- Locks: idempotency identity, subscription row
-- Errors: those of orbit.subscription_move
create or replace function orbit.subscription_resume_v1(
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
        p_idempotency_key, p_request_sha256, 'resume', 'resumed', 'ACTIVE');
end $$;
