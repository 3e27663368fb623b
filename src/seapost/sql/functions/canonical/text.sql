-- Purpose: the canonical text of a JSON value: names in the order of their UTF-16 units, ECMAScript numbers. Strings and
-- plain whole numbers inside an object are written in place, because most of a document is that and a call costs more.
-- Locks: none.
-- Errors: 22003 a number beyond the doubles.
create or replace function seapost.canonical_text(p_value jsonb)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    case jsonb_typeof(p_value)
    when 'object' then
        -- UTF-8 orders by code point; UTF-16 puts U+E000..U+FFFF (lead bytes EE and EF) behind everything above U+FFFF.
        return '{' || coalesce((
            select string_agg(to_json(f.key)::text || ':' || case
                    when jsonb_typeof(f.value) = 'string' or f.value::text ~ '^(0|[1-9][0-9]{0,14})$' then f.value::text
                    else seapost.canonical_text(f.value) end, ','
                order by translate(convert_from(convert_to(f.key, 'UTF8'), 'LATIN1'), U&'\00EE\00EF', U&'\00F8\00F9') collate "C")
            from jsonb_each(p_value) as f), '') || '}';
    when 'array' then
        return '[' || coalesce((
            select string_agg(seapost.canonical_text(e.value), ',' order by e.n)
            from jsonb_array_elements(p_value) with ordinality as e (value, n)), '') || ']';
    when 'string' then
        return to_json(p_value #>> '{}')::text;
    when 'number' then
        return seapost.canonical_number((p_value #>> '{}')::numeric::float8);
    else
        return p_value::text;
    end case;
end $$;
