-- Purpose: the advisory lock that declares "a dispatcher of this destination sleeps". 64 bits, with a namespace of its
-- own, so that locks of other software can only meet it by a collision of hashes (then: a needless notification).
-- Locks: none.
-- Errors: none.
create or replace function seapost.dispatcher_sleep_key(p_destination text)
returns bigint
language sql
immutable
as $$ select pg_catalog.hashtextextended('seapost.dispatcher.sleep/' || p_destination, 0) $$;
