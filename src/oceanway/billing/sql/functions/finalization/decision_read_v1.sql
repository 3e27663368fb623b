-- Purpose: the stored decisions for references, in order, each with the identity of the case it requested; nulls where there
--   is none (CASE-06).
-- Locks: none.
-- Errors: none.
create or replace function billing.finalization_decision_read_v1(p_decision_refs text[])
returns table (document bytea, case_identity bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.document, c.case_identity
    from unnest(p_decision_refs) with ordinality as g (ref, line)
    left join billing.finalization_decision as d on d.billing_finalization_decision_ref = g.ref
    left join billing.reconciliation as c on c.billing_finalization_decision_ref = g.ref
    order by g.line
$$;
