-- Purpose: sets how many open tasks an application may have; null is no limit (TSK-07).
-- Locks: the quota row.
-- Errors: OB026 the limit is out of range.
create or replace function orbit.quota_set(p_namespace_id text, p_application_id text, p_max_open_tasks integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_max_open_tasks not between 1 and 100000 then
        raise exception using errcode = 'OB026', message = 'max_open_tasks must be 1 to 100000';
    end if;
    insert into orbit.application_quotas as q (application_id, max_open_tasks) values (p_application_id, p_max_open_tasks)
    on conflict (application_id) do update set max_open_tasks = excluded.max_open_tasks;
    perform orbit.audit_write(p_namespace_id, null, 'application.quota_set', 'application', p_application_id,
        json_build_object('max_open_tasks', p_max_open_tasks));
end $$;
