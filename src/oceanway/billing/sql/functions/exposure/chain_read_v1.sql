-- Purpose: the facts that took dimensions from one revision to another, in order, each with the exposure it left (CASE-29,
--   REF-44); `question` is the place of the question, from 1.
-- Locks: none.
-- Errors: none; what does not exist has no row.
create or replace function billing.exposure_chain_read_v1(
    p_dimensions text[], p_from_revisions bigint[], p_to_revisions bigint[]
)
returns table (question bigint, revision bigint, fact_kind text, document bytea, exposure bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select q.question, r.revision, r.fact_kind, coalesce(t.document, c.document), coalesce(t.exposure, c.exposure)
    from unnest(p_dimensions, p_from_revisions, p_to_revisions) with ordinality as q (dimension, before, after, question)
    join billing.dimension_revision as r
      on r.settlement_dimension_id = q.dimension and r.revision > q.before and r.revision <= q.after
    left join billing.transition as t
      on t.settlement_dimension_id = r.settlement_dimension_id and t.to_revision = r.revision
    left join billing.late_command_result as c
      on c.settlement_dimension_id = r.settlement_dimension_id and c.to_revision = r.revision
    order by q.question, r.revision
$$;
