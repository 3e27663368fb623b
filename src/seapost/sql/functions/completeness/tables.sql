-- Purpose: the tables of a version's view: for each the digest of its rows now, and whether that is what the folds left.
-- Locks: none.
-- Errors: SP013 a table is gone.
create or replace function seapost.completeness_tables(p_name text, p_version text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object('table', t.schema_name || '.' || t.table_name, 'count', n.row_count,
            'setDigest', seapost.completeness_set_digest(n.row_count, n.sum_a, n.sum_b),
            'state', case when (n.row_count, n.sum_a, n.sum_b) = (k.row_count, k.sum_a, k.sum_b) then 'as_folded' else 'altered' end)
        order by t.schema_name, t.table_name), '[]')
    from seapost.projection_table as t
    cross join lateral seapost.completeness_row_sum(t.schema_name, t.table_name) as n
    cross join lateral (
        select coalesce(sum(s.row_count), 0) as row_count, coalesce(sum(s.sum_a), 0) as sum_a, coalesce(sum(s.sum_b), 0) as sum_b
        from seapost.projection_table_sum as s
        where s.projection_name = t.projection_name and s.projection_version = t.projection_version
          and s.schema_name = t.schema_name and s.table_name = t.table_name) as k
    where t.projection_name = p_name and t.projection_version = p_version
$$;
