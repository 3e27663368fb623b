-- Purpose: reads one delivery of a subscription that the caller has checked.
-- Locks: none
-- Errors: OB023 missing, or of another subscription
create or replace function orbit.delivery_read(p_subscription_id text, p_delivery_id text)
returns orbit.event_deliveries
language plpgsql
stable
as $$
declare
    v_delivery orbit.event_deliveries;
begin
    select * into v_delivery from orbit.event_deliveries as d where d.delivery_id = p_delivery_id;
    if v_delivery.subscription_id is distinct from p_subscription_id then
        raise exception using errcode = 'OB023',
            message = format('subscription %s has no delivery %s', p_subscription_id, left(p_delivery_id, 64));
    end if;
    return v_delivery;
end $$;
