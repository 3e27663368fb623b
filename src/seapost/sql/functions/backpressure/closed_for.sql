-- Purpose: how long a gate with this value stays closed; zero when it is open. An end that is more than 10 s away was
-- written before the clock was set back, and does not hold.
-- Locks: none.
-- Errors: none.
create or replace function seapost.backpressure_closed_for(p_value bigint)
returns interval
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select case when c.closed_for between interval '0' and interval '10 s' then c.closed_for else interval '0' end
    from (select case when p_value < -1099511627776 then to_timestamp((-p_value >> 21) / 1000.0) - seapost.clock_now() end
          as closed_for) as c
$$;
