-- Purpose: the RFC 8785 bytes of a JSON value, for producers without a library of their own and for checks in the
-- database (REF-02). jsonb has dropped what I-JSON forbids (duplicate names, U+0000) before this is called.
-- Locks: none.
-- Errors: 22003 a number beyond the doubles.
create or replace function seapost.canonical_json_v1(p_value jsonb)
returns bytea
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$ select convert_to(seapost.canonical_text(p_value), 'UTF8') $$;
