-- Purpose: the last three questions of AUT-11 for a subscription that was just read: owned by the credential (a missing
--   row and a foreign one get one answer, so that existence is not revealed), queue in scope, not `DISABLED`. Owner,
--   queue and legacy are frozen (SUB-22, MIG-12), so the answer is the same with and without the row's lock.
-- Locks: none
-- Errors: OB016 missing or foreign, OB005 queue out of scope, OB017 disabled
create or replace function orbit.subscription_check(
    p_credential orbit.credentials, p_subscription orbit.event_subscriptions, p_subscription_id text
)
returns void
language plpgsql
stable
as $$
begin
    if p_subscription.owner_credential_id is distinct from p_credential.credential_id
        or p_subscription.namespace_id is distinct from p_credential.namespace_id then
        raise exception using errcode = 'OB016', message = format('there is no subscription %s', left(p_subscription_id, 64));
    end if;
    if not orbit.access_queue_in_scope(p_credential, p_subscription.queue_id) then
        raise exception using errcode = 'OB005',
            message = format('the queue of subscription %s is outside the credential''s scope', p_subscription.subscription_id);
    end if;
    if p_subscription.status = 'DISABLED' then
        raise exception using errcode = 'OB017',
            message = format('subscription %s is disabled', p_subscription.subscription_id);
    end if;
end $$;
