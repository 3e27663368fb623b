-- Purpose: notifies the destinations whose dispatcher has declared itself asleep, at commit of the caller's transaction.
-- Trying the lock shared and giving it back touches shared memory only; NOTIFY in every commit would cost producers
-- about half their rate. The notification is a hint, polling is the truth.
-- Locks: a session advisory lock on each destination, shared, for a moment.
-- Errors: none.
create or replace function seapost.outbox_notify_sleepers(p_destinations text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_destination text;
    v_key bigint;
begin
    foreach v_destination in array p_destinations loop
        v_key := seapost.dispatcher_sleep_key(v_destination);
        if not (pg_try_advisory_lock_shared(v_key) and pg_advisory_unlock_shared(v_key)) then  -- left to right
            perform pg_notify('seapost', v_destination);
        end if;
    end loop;
end $$;
