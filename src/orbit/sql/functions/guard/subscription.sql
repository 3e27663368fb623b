-- Purpose: what a subscription may never suffer: a changed frozen field, a cursor that goes back, a revision that moves
-- without the status or the other way round (SUB-20, SUB-21).
-- Locks: none.
-- Errors: 23001.
create or replace function orbit.guard_subscription()
returns trigger
language plpgsql
as $$
begin
    if (new.subscription_id, new.namespace_id, new.name, new.legacy, new.owner_credential_id,
            new.queue_id, new.types, new.from_sequence, new.max_pending, new.max_attempts)
            is distinct from
            (old.subscription_id, old.namespace_id, old.name, old.legacy, old.owner_credential_id,
            old.queue_id, old.types, old.from_sequence, old.max_pending, old.max_attempts)
        or new.cursor_sequence < old.cursor_sequence
        or new.revision <> old.revision + (new.status is distinct from old.status)::int then
        raise exception using errcode = '23001', message = 'orbit: a frozen field of a subscription changed';
    end if;
    return new;
end $$;
