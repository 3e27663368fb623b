-- Purpose: names exactly what a proof asks and how: the events and tables of the version, the semantic check, and the hashes of
-- this server. Two proofs are comparable only under the same one (ORD-11).
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_definition_digest(p_name text, p_version text, p_semantic jsonb)
returns bytea
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select sha256(convert_to(seapost.canonical_text(jsonb_build_object(
        'query', 'seapost.completeness', 'queryVersion', '1', 'hashes', current_setting('server_version_num')::int / 10000,
        'projectionName', p_name, 'projectionVersion', p_version,
        'semanticDefinition', p_semantic - 'state' - 'resultDigest',
        'events', (select coalesce(jsonb_agg(u.event_type || ' ' || u.schema_version order by u.event_type, u.schema_version), '[]')
            from seapost.projection_support as u where u.projection_name = p_name and u.projection_version = p_version),
        'tables', (select coalesce(jsonb_agg(t.schema_name || '.' || t.table_name order by t.schema_name, t.table_name), '[]')
            from seapost.projection_table as t where t.projection_name = p_name and t.projection_version = p_version))), 'UTF8'))
$$;
