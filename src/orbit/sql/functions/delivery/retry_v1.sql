-- Purpose: gives an `EXPIRED` delivery more attempts (TX-14, section 10): `PENDING` at once, budget grown; attempts, epoch,
--   proof and identity stay, so a late ACK still counts until a new claim (RTY-04, RTY-05, RTY-09). Allowed while the
--   subscription is paused (RTY-12). Check order: state, revision, budget (RTY-11), behind the replay (IDM-09).
-- Locks: idempotency identity, subscription row, delivery (LCK-04)
-- Errors: OB001..OB004, OB016, OB005, OB017, OB026 an argument, OB015, OB023, OB024 not expired, OB014, OB025 budget
create or replace function orbit.delivery_retry_v1(
    p_token_sha256 bytea, p_subscription_id text, p_delivery_id text, p_expected_revision bigint, p_reason text,
    p_additional_attempts integer, p_idempotency_key text, p_request_sha256 text
)
returns table (response_status integer, response_json text, replayed boolean, wake_subscription_id text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    v_credential orbit.credentials := orbit.access_check(p_token_sha256, 'events:manage');
    v_subscription orbit.event_subscriptions := orbit.subscription_read(v_credential, p_subscription_id);
    v_reason constant text := regexp_replace(p_reason, '^\s+|\s+$', '', 'g');
    v_stored record;
    v_delivery orbit.event_deliveries;
    v_now timestamptz;
    v_body text;
begin
    if p_expected_revision is null or coalesce(char_length(v_reason), 0) not between 1 and 1000
        or coalesce(p_additional_attempts, 0) not between 1 and 100 then
        raise exception using errcode = 'OB026',
            message = 'expected_revision, a reason and additional_attempts from 1 to 100 are required';
    end if;
    v_stored := orbit.idempotency_begin(v_credential, 'event_delivery.retry', p_subscription_id || '/' || p_delivery_id,
        p_idempotency_key, p_request_sha256);
    if v_stored.response_status is not null then
        return query select v_stored.response_status, v_stored.response_json, true, null::text;
        return;
    end if;
    perform 1 from orbit.event_subscriptions as s where s.subscription_id = p_subscription_id for update;
    v_now := clock_timestamp();
    v_delivery := orbit.delivery_read(p_subscription_id, p_delivery_id);
    if v_delivery.state <> 'EXPIRED' then
        raise exception using errcode = 'OB024', message = format('delivery %s is %s', p_delivery_id, v_delivery.state);
    end if;
    if v_delivery.revision <> p_expected_revision then
        raise exception using errcode = 'OB014',
            message = format('delivery %s has revision %s', p_delivery_id, v_delivery.revision),
            detail = format('{"current_revision":%s}', v_delivery.revision);
    end if;
    if v_delivery.attempt_budget + p_additional_attempts > 1000000 then
        raise exception using errcode = 'OB025',
            message = format('the budget of delivery %s would exceed 1000000 attempts', p_delivery_id);
    end if;
    update orbit.event_deliveries as d
    set state = 'PENDING', attempt_budget = d.attempt_budget + p_additional_attempts, available_at = v_now,
        revision = d.revision + 1, updated_at = v_now
    where d.delivery_id = p_delivery_id
    returning d.* into v_delivery;
    perform orbit.audit_write(v_delivery.namespace_id, v_credential.credential_id, 'event.delivery.retried',
        'event_delivery', p_delivery_id, (
            select row_to_json(a) from (
                select v_delivery.subscription_id, v_delivery.event_id, p_additional_attempts as additional_attempts,
                    v_delivery.attempt_budget, v_delivery.attempts, v_delivery.lease_epoch, p_reason as reason) as a));
    v_body := orbit.delivery_body(v_delivery);
    perform orbit.idempotency_end(v_stored.identity, 200, v_body);
    return query select 200, v_body, false, p_subscription_id;
end $$;
