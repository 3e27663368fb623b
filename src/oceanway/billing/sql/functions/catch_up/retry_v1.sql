-- Purpose: gives works back without an end, each after its own growing pause; nothing else is written (AMB-45).
-- Locks: the catch-up fences, in order.
-- Errors: none; a work whose lease is lost is left alone.
-- Returns: how many were given back.
create or replace function billing.catch_up_retry_v1(
    p_work_refs text[], p_fencing_tokens bigint[], p_base interval, p_max interval
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_count integer;
begin
    perform from billing.catch_up_fence as c
    where c.active_work_ref = any (p_work_refs) order by c.settlement_dimension_id for no key update;
    update billing.catch_up_fence as c
    set lease_owner = null, fencing_token = null, lease_expires_at = null, retry_count = c.retry_count + 1,
        available_at = clock_timestamp() + least(p_base * power(2, least(c.retry_count, 20)), p_max)
    from unnest(p_work_refs, p_fencing_tokens) as g (work_ref, token)
    where c.active_work_ref = g.work_ref and c.fencing_token = g.token;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
