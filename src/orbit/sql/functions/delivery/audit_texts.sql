-- Purpose: what the audit rows of one claim or one group of ACKs share, made once (a function of language SQL would be
--   planned at every call): [1] the beginning of the audit ids, [2] of the detail, up to the delivery id, [3] its end
--   for a claim, after the attempts, [4] for an ACK, after the deadline, up to the value of `late` (AUD-07). Ids of ours
--   need no escaping; the connection id is given.
-- Locks: none
-- Errors: none
create or replace function orbit.delivery_audit_texts(
    p_subscription_id text, p_connection_id text, p_now timestamptz, p_until timestamptz
)
returns text[]
language plpgsql
stable
as $$
begin
    return array[orbit.id_prefix('audit', p_now),
        '{"subscription_id":' || to_json(p_subscription_id)::text || ',"delivery_id":"',
        ',"connection_id":' || to_json(p_connection_id)::text
        || ',"lease_expires_at":"' || orbit.time_text(p_until) || '"}',
        '","ack_connection_id":' || to_json(p_connection_id)::text || ',"late":'];
end $$;
