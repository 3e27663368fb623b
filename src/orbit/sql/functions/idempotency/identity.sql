-- Purpose: the composite identity of a request: lower-case hexadecimal SHA-256 over each part's length in bytes (four,
-- big-endian) and the part (IDM-03, IDM-05). Lengths keep two lists of parts apart that would join to the same text.
-- Locks: none.
-- Errors: none.
create or replace function orbit.idempotency_identity(variadic p_parts text[])
returns text
language plpgsql
immutable
as $$
declare
    v_part text;
    v_bytes bytea;
    v_all bytea := '';
begin
    foreach v_part in array '{orbit.idem.v1}'::text[] || p_parts loop
        v_bytes := convert_to(v_part, 'UTF8');
        v_all := v_all || int4send(octet_length(v_bytes)) || v_bytes;
    end loop;
    return encode(sha256(v_all), 'hex');
end $$;
