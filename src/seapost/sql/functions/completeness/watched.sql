-- Purpose: the trigger that keeps the sums of a view's table: every statement of a fold adds what it wrote and takes away what it
-- replaced. What is changed outside a fold of this very version is not counted, so the proof sees it.
-- Locks: the sum row of this session's slot.
-- Errors: none.
create or replace function seapost.completeness_watched()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
set extra_float_digits = 1
set bytea_output = 'hex'
as $$
declare
    v_rows numeric := 0;
    v_a numeric := 0;
    v_b numeric := 0;
    v_removed record;
begin
    if current_setting('seapost.projection', true) is distinct from tg_argv[0] || '@' || tg_argv[1] then
        return null;
    end if;
    if tg_op in ('INSERT', 'UPDATE') then
        select count(*), coalesce(sum(hashtextextended(n::text, 1)::numeric), 0), coalesce(sum(hashtextextended(n::text, 2)::numeric), 0)
        into v_rows, v_a, v_b from new_rows as n;
    end if;
    if tg_op in ('UPDATE', 'DELETE') then
        select count(*) as n, coalesce(sum(hashtextextended(o::text, 1)::numeric), 0) as a,
               coalesce(sum(hashtextextended(o::text, 2)::numeric), 0) as b
        into v_removed from old_rows as o;
        v_rows := v_rows - v_removed.n;
        v_a := v_a - v_removed.a;
        v_b := v_b - v_removed.b;
    end if;
    insert into seapost.projection_table_sum as s (projection_name, projection_version, schema_name, table_name, slot, row_count, sum_a, sum_b)
    values (tg_argv[0], tg_argv[1], tg_table_schema, tg_table_name, pg_backend_pid() % 64, v_rows, v_a, v_b)
    on conflict (projection_name, projection_version, schema_name, table_name, slot) do update
    set row_count = s.row_count + excluded.row_count, sum_a = s.sum_a + excluded.sum_a, sum_b = s.sum_b + excluded.sum_b;
    return null;
end $$;
