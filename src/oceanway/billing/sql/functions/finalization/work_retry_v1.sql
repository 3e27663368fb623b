-- Purpose: gives works back without an end, each after its own growing pause; nothing else is written (AMB-45, AMB-51).
-- Locks: the fences, in order.
-- Errors: none; a work whose lease is lost is left alone.
-- Returns: how many were given back.
create or replace function billing.finalization_work_retry_v1(
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
    perform from billing.finalization_fence as f
    where f.active_work_ref = any (p_work_refs) order by f.billing_finalization_fence_id for no key update;
    update billing.finalization_fence as f
    set lease_owner = null, fencing_token = null, lease_expires_at = null, retry_count = f.retry_count + 1,
        available_at = clock_timestamp() + least(p_base * power(2, least(f.retry_count, 20)), p_max)
    from unnest(p_work_refs, p_fencing_tokens) as g (work_ref, token)
    where f.active_work_ref = g.work_ref and f.fencing_token = g.token;
    get diagnostics v_count = row_count;
    return v_count;
end $$;
