-- Purpose: begins to keep the sums of the tables of a version; they must be empty, or what stands in them is what is proved
-- from then on. The owner of Seapost's functions may read them afterwards. Watching twice changes nothing.
-- Locks: SHARE ROW EXCLUSIVE on each table, to the end of the transaction.
-- Errors: SP013 the version has no such table.
create or replace function seapost.completeness_watch_v1(p_name text, p_version text)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_owner constant text := (select n.nspowner::regrole::text from pg_namespace as n where n.nspname = 'seapost');
    v_table record;
    v_number int := 0;
begin
    for v_table in
        select t.schema_name, t.table_name from seapost.projection_tables as t
        where t.projection_name = p_name and t.projection_version = p_version
          and not exists (select from pg_trigger as g join pg_class as c on c.oid = g.tgrelid join pg_namespace as n on n.oid = c.relnamespace
              where n.nspname = t.schema_name and c.relname = t.table_name and g.tgname = 'seapost_watched_insert')
        order by 1, 2
    loop
        if not has_schema_privilege(v_owner, v_table.schema_name, 'usage') then
            execute format('grant usage on schema %I to %s', v_table.schema_name, v_owner);
        end if;
        execute format('grant select on %I.%I to %s', v_table.schema_name, v_table.table_name, v_owner);
        execute format('create trigger seapost_watched_insert after insert on %I.%I referencing new table as new_rows
            for each statement execute function seapost.completeness_watched(%L, %L)', v_table.schema_name, v_table.table_name, p_name, p_version);
        execute format('create trigger seapost_watched_update after update on %I.%I referencing old table as old_rows new table as new_rows
            for each statement execute function seapost.completeness_watched(%L, %L)', v_table.schema_name, v_table.table_name, p_name, p_version);
        execute format('create trigger seapost_watched_delete after delete on %I.%I referencing old table as old_rows
            for each statement execute function seapost.completeness_watched(%L, %L)', v_table.schema_name, v_table.table_name, p_name, p_version);
        v_number := v_number + 1;
    end loop;
    return v_number;
end $$;
