-- Purpose: one transaction at a time changes a projection version; see `event_enter`.
-- Locks: an advisory lock on the version, to the end of the transaction.
-- Errors: none.
create or replace function operations.event_lock(p_version text)
returns void
language sql
as $$ select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('operations.projection/' || p_version, 0)) $$;
