-- Purpose: the only changes that a delivery may suffer: the arrows of its state machine, each with the revision, the
-- attempts, the epoch, the budget and the lease that belong to it (LSE-01, LSE-24).
-- Locks: none.
-- Errors: 23001.
create or replace function orbit.guard_delivery()
returns trigger
language plpgsql
as $$
declare
    v_claimed int := (old.state = 'PENDING' and new.state = 'LEASED')::int;
    v_retried int := (old.state = 'EXPIRED' and new.state = 'PENDING')::int;
begin
    if (new.delivery_id, new.namespace_id, new.subscription_id, new.event_id, new.event_sequence, new.legacy,
            new.created_at)
            is distinct from
            (old.delivery_id, old.namespace_id, old.subscription_id, old.event_id, old.event_sequence, old.legacy,
            old.created_at)
        or not ((old.state, new.state) in (('PENDING', 'LEASED'), ('PENDING', 'ACKED'), ('LEASED', 'PENDING'),
            ('LEASED', 'EXPIRED'), ('LEASED', 'ACKED'), ('EXPIRED', 'PENDING'), ('EXPIRED', 'ACKED')))
        or new.revision <> old.revision + 1
        or new.attempts <> old.attempts + v_claimed or new.lease_epoch <> old.lease_epoch + v_claimed
        or new.attempt_budget - old.attempt_budget not between v_retried and v_retried * 100
        or (v_claimed = 1) = (new.lease_secret_sha256 is not distinct from old.lease_secret_sha256)
        or (v_claimed = 0 and (new.lease_connection_id, new.lease_expires_at)
            is distinct from (old.lease_connection_id, old.lease_expires_at)) then
        raise exception using errcode = '23001',
            message = format('orbit: illegal delivery change %s -> %s', old.state, new.state);
    end if;
    return new;
end $$;
