-- Purpose: what makes two confirmations the same (TSK-19): SHA-256 over outcome, effect, retryable and the exact text of the
--   result, each behind its length as in IDM-05, in hexadecimal digits. `1.0` and `1.00` are different results.
-- Locks: none
-- Errors: none
create or replace function orbit.attempt_fingerprint(p_outcome text, p_effect text, p_retryable boolean, p_result_json text)
returns text
language plpgsql
immutable
as $$
declare
    v_part bytea;
    v_all bytea := '';
begin
    foreach v_part in array array[convert_to(p_outcome, 'UTF8'), convert_to(p_effect, 'UTF8'),
        convert_to(case when p_retryable then 'true' else 'false' end, 'UTF8'), convert_to(coalesce(p_result_json, ''), 'UTF8')]
    loop
        v_all := v_all || int4send(octet_length(v_part)) || v_part;
    end loop;
    return encode(sha256(v_all), 'hex');
end $$;
