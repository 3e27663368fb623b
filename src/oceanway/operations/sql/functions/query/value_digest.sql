-- Purpose: under what an exact identifier is found: a digest, so that the index itself names nobody (OPS-05).
-- Locks: none.
-- Errors: none.
create or replace function operations.query_value_digest(p_kind text, p_value text)
returns bytea
language sql
immutable
as $$ select pg_catalog.sha256(pg_catalog.convert_to(p_kind || ':' || p_value, 'UTF8')) $$;
