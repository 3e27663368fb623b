-- Purpose: the rows of a view's table as they stand: count and two sums over the hashes of their texts.
-- Locks: none.
-- Errors: SP013 the table is gone.
create or replace function seapost.completeness_row_sum(p_schema text, p_table text)
returns table (row_count numeric, sum_a numeric, sum_b numeric)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
set extra_float_digits = 1
set bytea_output = 'hex'
as $$
begin
    if to_regclass(format('%I.%I', p_schema, p_table)) is null then
        raise exception using errcode = 'SP013', message = 'a table of the view is gone', detail = left(format('%I.%I', p_schema, p_table), 200);
    end if;
    return query execute format(
        'select count(*)::numeric, coalesce(sum(hashtextextended(t::text, 1)::numeric), 0),
                coalesce(sum(hashtextextended(t::text, 2)::numeric), 0) from %I.%I as t', p_schema, p_table);
end $$;
