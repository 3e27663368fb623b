-- Purpose: makes a version of a projection known with what it folds and keeps, and returns its state: insert, or compare with
-- what is stored. The first version of a projection is active at once and pointed at, because there is nothing else to read; a
-- later one is being built (REF-05). A version that was known without them gets its events and tables once.
-- Locks: the advisory lock "projection register" to the end of the transaction.
-- Errors: SP013 argument; SP035 registered with other events or tables.
create or replace function seapost.projection_register_v2(
    p_name text, p_version text, p_event_types text[], p_schema_versions text[], p_schemas text[], p_tables text[],
    p_receipt_key text, p_actor text
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_state text;
begin
    if cardinality(p_event_types) is distinct from cardinality(p_schema_versions) or cardinality(p_event_types) > 1000
       or cardinality(p_schemas) is distinct from cardinality(p_tables) or cardinality(p_tables) > 1000 then
        raise exception using errcode = 'SP013', message = 'the arrays of a call must be parallel, with at most 1000 items';
    end if;
    if p_receipt_key is null or p_receipt_key <> split_part(p_receipt_key, '@', 1) || '@' || p_name || '@' || p_version then
        raise exception using errcode = 'SP013', message = 'p_receipt_key must be consumer@projection@version';
    end if;
    v_state := seapost.projection_register_v1(p_name, p_version, p_actor);
    update seapost.projection_version as v set receipt_key = p_receipt_key
    where v.projection_name = p_name and v.projection_version = p_version and v.receipt_key is null;
    if not exists (select from seapost.projection_support as u where u.projection_name = p_name and u.projection_version = p_version)
       and not exists (select from seapost.projection_table as t where t.projection_name = p_name and t.projection_version = p_version) then
        insert into seapost.projection_support (projection_name, projection_version, event_type, schema_version)
        select p_name, p_version, u.event_type, u.schema_version
        from unnest(p_event_types, p_schema_versions) as u (event_type, schema_version);
        insert into seapost.projection_table (projection_name, projection_version, schema_name, table_name)
        select p_name, p_version, u.schema_name, u.table_name
        from unnest(p_schemas, p_tables) as u (schema_name, table_name);
        return v_state;
    end if;
    if exists (
        (select u.event_type collate "C", u.schema_version collate "C" from unnest(p_event_types, p_schema_versions) as u (event_type, schema_version)
         except select s.event_type, s.schema_version from seapost.projection_support as s
         where s.projection_name = p_name and s.projection_version = p_version)
        union all
        (select s.event_type, s.schema_version from seapost.projection_support as s
         where s.projection_name = p_name and s.projection_version = p_version
         except select u.event_type collate "C", u.schema_version collate "C" from unnest(p_event_types, p_schema_versions) as u (event_type, schema_version)))
       or (select coalesce(array_agg(u.schema_name || '.' || u.table_name order by u.schema_name || '.' || u.table_name), '{}')
           from unnest(p_schemas, p_tables) as u (schema_name, table_name))
          is distinct from
          (select coalesce(array_agg(t.schema_name || '.' || t.table_name order by t.schema_name || '.' || t.table_name), '{}') from seapost.projection_table as t
           where t.projection_name = p_name and t.projection_version = p_version) then
        raise exception using errcode = 'SP035', message = 'the projection version is registered with other events or tables',
            detail = format('%s version %s; a changed projection is a new version', p_name, p_version);
    end if;
    return v_state;
end $$;
