-- Purpose: locks the fence of a leased work and requires that the lease and the revision are still current.
-- Locks: the fence.
-- Errors: OW002 the lease, the work or the revision is no longer current.
create or replace function billing.finalization_hold(p_work_ref text, p_fencing_token bigint, p_expected_revision bigint)
returns billing.finalization_fence
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fence billing.finalization_fence;
begin
    select f.* into v_fence from billing.finalization_work as w
    join billing.finalization_fence as f on f.billing_finalization_fence_id = w.billing_finalization_fence_id
    where w.billing_finalization_work_ref = p_work_ref for no key update of f;
    if not found or (v_fence.active_work_ref, v_fence.fencing_token, v_fence.fence_revision)
        is distinct from (p_work_ref, p_fencing_token, p_expected_revision) then
        raise exception using errcode = 'OW002', message = 'the finalization work is no longer the current one';
    end if;
    return v_fence;
end $$;
