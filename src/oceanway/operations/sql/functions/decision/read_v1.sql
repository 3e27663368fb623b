-- Purpose: the stored steps of one chain, in order.
-- Locks: none.
-- Errors: none.
create or replace function operations.decision_read_v1(p_chain_id text)
returns table (step smallint, step_name text, document bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select d.step, d.step_name, d.document from operations.decision_step as d where d.chain_id = p_chain_id order by d.step
$$;
