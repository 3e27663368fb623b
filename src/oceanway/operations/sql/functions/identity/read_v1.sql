-- Purpose: the stored identities for pairs of fence and generation, in order; null where there is none.
-- Locks: none.
-- Errors: none.
create or replace function operations.identity_read_v1(p_fences text[], p_generations bigint[])
returns table (document bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select r.document
    from unnest(p_fences, p_generations) with ordinality as g (fence, generation, line)
    left join operations.case_identity_reservation as r
        on r.billing_finalization_fence_id = g.fence and r.reconciliation_generation = g.generation
    order by g.line
$$;
