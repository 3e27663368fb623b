-- Purpose: the stored answers to complete questions, in order; null where the owner was never asked (AMB-39).
-- Locks: none.
-- Errors: none.
create or replace function operations.query_read_result_v1(p_operation text, p_purpose text, p_arguments bytea[])
returns table (answer bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select r.answer
    from unnest(p_arguments) with ordinality as g (arguments, line)
    left join operations.owner_read_results as r
        on r.operation = p_operation and r.purpose = p_purpose and r.arguments_sha256 = sha256(g.arguments)
    order by g.line
$$;
