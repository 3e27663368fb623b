-- Purpose: what stands in a history for a text: 32 hex digits of its SHA-256 behind a prefix (`digest_of` in Python).
-- Locks: none
-- Errors: none
create or replace function orbit.history_digest(p_content text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
select left(encode(sha256('\x6f726269742d686973746f727900'::bytea || convert_to(p_content, 'UTF8')), 'hex'), 32)
$$;
