-- Purpose: whether a text is a real moment in the one spelling of contracts: RFC 3339 in UTC with six decimals and Z.
-- What PostgreSQL would repair (second 60, hour 24, the 30th of February) does not come back as it was given.
-- Locks: none.
-- Errors: none.
create or replace function seapost.outbox_is_timestamp(p_value text)
returns boolean
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return p_value ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$'
       and p_value = to_char(p_value::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
exception when data_exception then
    return false;
end $$;
