-- Purpose: the stored resolution facts for operations, in order; null where there is none.
-- Locks: none.
-- Errors: none.
create or replace function billing.resolution_read_v1(p_operation_ids text[])
returns table (document bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select r.document
    from unnest(p_operation_ids) with ordinality as g (operation_id, line)
    left join billing.resolution_applied as r on r.resolution_operation_id = g.operation_id
    order by g.line
$$;
