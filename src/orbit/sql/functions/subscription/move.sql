-- Purpose: pause and resume, which differ in their words only (TX-13). They change status and revision, nothing else:
--   no lease is recycled or withdrawn (PAU-02, PAU-05, PAU-06). The replay is answered before state and revision are
--   looked at (IDM-09), after every question of AUT-11, whose answers need no lock.
-- Locks: idempotency identity, subscription row (LCK-04)
-- Errors: OB001..OB004, OB016, OB005, OB017, OB026 reason, OB015, OB020 already there, OB014 revision
create or replace function orbit.subscription_move(
    p_token_sha256 bytea, p_subscription_id text, p_expected_revision bigint, p_reason text, p_idempotency_key text,
    p_request_sha256 text, p_verb text, p_participle text, p_status text
)
returns table (response_status integer, response_json text, replayed boolean, wake_subscription_id text)
language plpgsql
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'events:manage');
    v_subscription orbit.event_subscriptions := orbit.subscription_read(v_credential, p_subscription_id);
    v_stored record;
    v_body text;
begin
    if p_expected_revision is null or char_length(p_reason) > 1000 then
        raise exception using errcode = 'OB026',
            message = 'expected_revision is required and reason has at most 1000 characters';
    end if;
    v_stored := orbit.idempotency_begin(
        v_credential, 'event_subscription.' || p_verb, p_subscription_id, p_idempotency_key, p_request_sha256);
    if v_stored.response_status is not null then
        return query select v_stored.response_status, v_stored.response_json, true, null::text;
        return;
    end if;
    select * into v_subscription from orbit.event_subscriptions as s
    where s.subscription_id = p_subscription_id for update;
    if v_subscription.status = p_status then
        raise exception using errcode = 'OB020',
            message = format('subscription %s is %s already', p_subscription_id, p_status);
    end if;
    if v_subscription.revision <> p_expected_revision then
        raise exception using errcode = 'OB014',
            message = format('subscription %s has revision %s', p_subscription_id, v_subscription.revision),
            detail = format('{"current_revision":%s}', v_subscription.revision);
    end if;
    update orbit.event_subscriptions as s
    set status = p_status, revision = s.revision + 1, updated_at = clock_timestamp()
    where s.subscription_id = p_subscription_id
    returning s.* into v_subscription;
    perform orbit.audit_write(v_subscription.namespace_id, v_credential.credential_id,
        'event.subscription.' || p_participle, 'event_subscription', p_subscription_id,
        (select row_to_json(d) from (select v_subscription.revision, p_reason) as d (revision, reason)));
    v_body := orbit.subscription_body(v_subscription);
    perform orbit.idempotency_end(v_stored.identity, 200, v_body);
    return query select 200, v_body, false, p_subscription_id;
end $$;
