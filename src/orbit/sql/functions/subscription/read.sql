-- Purpose: reads a subscription for a credential, with every question of AUT-11 that follows the action.
-- Locks: none (LCK-06)
-- Errors: OB016, OB005, OB017
create or replace function orbit.subscription_read(p_credential orbit.credentials, p_subscription_id text)
returns orbit.event_subscriptions
language plpgsql
stable
as $$
declare
    v_subscription orbit.event_subscriptions;
begin
    select * into v_subscription from orbit.event_subscriptions as s where s.subscription_id = p_subscription_id;
    perform orbit.subscription_check(p_credential, v_subscription, p_subscription_id);
    return v_subscription;
end $$;
