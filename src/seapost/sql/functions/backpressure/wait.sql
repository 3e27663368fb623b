-- Purpose: how long append may wait for room: what the limit says, but at most half of a timeout of this session, so that
-- the refusal comes before the timeout; and not at all above READ COMMITTED, where the count would never change.
-- Locks: none.
-- Errors: none.
create or replace function seapost.backpressure_wait(p_seconds int)
returns interval
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select case when p_seconds > 0 and current_setting('transaction_isolation') = 'read committed' then least(
        make_interval(secs => p_seconds), (
            select min(t.setting::interval) / 2
            from (values (current_setting('statement_timeout')), (current_setting('transaction_timeout', true))) as t (setting)
            where t.setting::interval > interval '0'))
        else interval '0' end
$$;
