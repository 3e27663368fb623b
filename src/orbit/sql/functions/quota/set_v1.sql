-- Purpose: sets how many open tasks an application may have; null is no limit (TSK-07, OPS-04). Returns the quota as JSON.
-- Locks: the quota row.
-- Errors: OB026 no such application, or the limit is out of range.
create or replace function orbit.quota_set_v1(p_namespace text, p_application text, p_max_open_tasks integer)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_application orbit.applications := orbit.application_named(p_namespace, p_application);
begin
    perform orbit.quota_set(v_application.namespace_id, v_application.application_id, p_max_open_tasks);
    return (select row_to_json(b)::text
            from (select v_application.application_id, p_max_open_tasks as max_open_tasks) as b);
end $$;
