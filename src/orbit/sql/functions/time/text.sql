-- Purpose: a moment as it stands on the wire: RFC 3339 in UTC with six fractional digits and Z (GEN-08).
-- Locks: none.
-- Errors: none.
create or replace function orbit.time_text(p_time timestamptz)
returns text
language sql
stable
as $$ select to_char(p_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
