-- Purpose: a moment as documents spell it: RFC 3339, UTC, microseconds.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_moment(p_moment timestamptz)
returns text
language sql
immutable
as $$ select pg_catalog.to_char(p_moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
