-- Purpose: locks the fence of a leased work and says whether the lease, the work and the revision are still the latest and
--   the watermark is still the work's target (CAT-20, REF-09).
-- Locks: the watermark of the dimension, then its catch-up fence.
-- Errors: none.
create or replace function billing.catch_up_is_held(p_work_ref text, p_fencing_token bigint, p_expected_revision bigint)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_work jsonb;
    v_inbox billing.settlement_inbox;
    v_fence billing.catch_up_fence;
begin
    select convert_from(w.document, 'UTF8')::jsonb into v_work from billing.catch_up_work as w
    where w.billing_settlement_catch_up_work_ref = p_work_ref;
    select * into v_inbox from billing.settlement_inbox as i
    where i.settlement_dimension_id = v_work ->> 'settlementDimensionId' for no key update;
    select * into v_fence from billing.catch_up_fence as c
    where c.settlement_dimension_id = v_work ->> 'settlementDimensionId' for no key update;
    return (v_fence.active_work_ref, v_fence.fencing_token, v_fence.fence_revision)
            is not distinct from (p_work_ref, p_fencing_token, p_expected_revision)
        and billing.settlement_quint(v_inbox) is not distinct from v_work #> '{basis,targetInput}';
end $$;
