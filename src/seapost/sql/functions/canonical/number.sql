-- Purpose: a number as ECMAScript prints it, which RFC 8785 prescribes; the shortest digits come from PostgreSQL. From
-- 2^53 on PostgreSQL prints one digit more than ECMAScript where the shorter decimal lies exactly half-way to the next
-- double (1e23): there the shorter one is taken if it reads back as the same number.
-- Locks: none.
-- Errors: none.
create or replace function seapost.canonical_number(p_value float8)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
set extra_float_digits = 1
as $$
declare
    v_text text := abs(p_value)::text;
    v_mantissa text := split_part(v_text, 'e', 1);
    v_sign text := case when p_value < 0 then '-' else '' end;
    v_digits text;
    v_point int;  -- the value is 0.<digits> times ten to this power
    v_count int;
    v_shorter text;
begin
    if p_value = 0 then
        return '0';
    end if;
    v_digits := replace(v_mantissa, '.', '');
    v_point := length(split_part(v_mantissa, '.', 1)) + coalesce(nullif(split_part(v_text, 'e', 2), '')::int, 0);
    v_count := length(v_digits);
    v_digits := ltrim(v_digits, '0');
    v_point := v_point - (v_count - length(v_digits));
    v_digits := rtrim(v_digits, '0');
    v_count := length(v_digits);
    if v_count > 15 and abs(p_value) between 9007199254740992 and 1e40 then
        for v_step in 0..1 loop
            v_shorter := (left(v_digits, v_count - 1)::bigint + v_step)::text;
            if (v_shorter || 'e' || (v_point - v_count + 1))::float8 = abs(p_value) then
                v_point := v_point + length(v_shorter) - (v_count - 1);
                v_digits := rtrim(v_shorter, '0');
                v_count := length(v_digits);
                exit;
            end if;
        end loop;
    end if;
    return v_sign || case
        when v_point between v_count and 21 then rpad(v_digits, v_point, '0')
        when v_point between 1 and 21 then left(v_digits, v_point) || '.' || substr(v_digits, v_point + 1)
        when v_point between -5 and 0 then '0.' || repeat('0', -v_point) || v_digits
        else left(v_digits, 1) || case when v_count > 1 then '.' || substr(v_digits, 2) else '' end
            || 'e' || case when v_point > 0 then '+' else '-' end || abs(v_point - 1)
    end;
end $$;
