"""What the catalogs say about the schema itself, its roles and what acts on the whole database; see `catalog`."""

from __future__ import annotations

from typing import Final

from seapost.database.doctor.catalog import granted

SCHEMA: Final = (
    """
select 'schema ' || n.nspname, '', jsonb_build_object('owner', pg_get_userbyid(n.nspowner), 'privileges', """
    + granted("n.nspacl", "'n'", "n.nspowner")
    + """)
from pg_namespace as n
where n.nspname = %(schema)s"""
)

ROLES: Final = """
select 'role ' || r.rolname, '', jsonb_strip_nulls(jsonb_build_object(
    'login', nullif(r.rolcanlogin, false),
    'superuser', nullif(r.rolsuper, false),
    'inherit', nullif(r.rolinherit, true),
    'create role', nullif(r.rolcreaterole, false),
    'create database', nullif(r.rolcreatedb, false),
    'replication', nullif(r.rolreplication, false),
    'bypass row security', nullif(r.rolbypassrls, false),
    'connection limit', nullif(r.rolconnlimit, -1),
    'settings', (select jsonb_agg(v.setting order by v.setting)
                 from pg_db_role_setting as s
                 left join pg_database as d on d.oid = s.setdatabase
                 cross join unnest(s.setconfig) as v (setting)
                 where s.setrole = r.oid and (s.setdatabase = 0 or d.datname = current_database())),
    'member of', (select jsonb_agg(g.rolname order by g.rolname)
                  from pg_auth_members as m
                  join pg_roles as g on g.oid = m.roleid
                  where m.member = r.oid)))
from pg_roles as r
where r.rolname = any(%(roles)s)"""

DEFAULT_PRIVILEGES: Final = (
    """
select 'default privileges of ' || pg_get_userbyid(d.defaclrole) || ' on ' || case d.defaclobjtype
           when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types'
           when 'n' then 'schemas' else 'large objects' end || coalesce(' in ' || n.nspname, ''), '',
       jsonb_build_object('privileges', """
    + granted("d.defaclacl", "'r'", "d.defaclrole")
    + """)
from pg_default_acl as d
left join pg_namespace as n on n.oid = d.defaclnamespace
where n.nspname = %(schema)s or pg_get_userbyid(d.defaclrole) = %(owner)s"""
)

EVENT_TRIGGERS: Final = """
select 'event trigger ' || e.evtname, '', jsonb_build_object(
    'event', e.evtevent, 'function', e.evtfoid::regprocedure::text, 'state', e.evtenabled)
from pg_event_trigger as e
where not exists (select from pg_depend as d
                  where d.classid = 'pg_event_trigger'::regclass and d.objid = e.oid and d.deptype = 'e')"""
"""Those of extensions are left out: they belong to how the server is run."""

LOGIN_OWNERS: Final = """
select o.rolname::text, count(*)
from (select c.relowner as owner, c.relnamespace as namespace from pg_class as c
      union all select p.proowner, p.pronamespace from pg_proc as p
      union all select n.nspowner, n.oid from pg_namespace as n) as a
join pg_namespace as n on n.oid = a.namespace
join pg_roles as o on o.oid = a.owner
where n.nspname = %(schema)s and o.rolcanlogin
group by o.rolname order by o.rolname"""

MEMBERS: Final = """
with recursive member (role, oid) as (
    select r.rolname, m.member
    from pg_auth_members as m join pg_roles as r on r.oid = m.roleid where r.rolname = any(%(roles)s)
    union
    select b.role, m.member from member as b join pg_auth_members as m on m.roleid = b.oid)
select r.rolname::text, r.rolsuper, array_agg(m.role::text order by m.role)
from member as m join pg_roles as r on r.oid = m.oid
where r.rolcanlogin
group by r.rolname, r.rolsuper order by r.rolname"""
"""Login roles that are, directly or through others, members of our roles."""

SERVER: Final = """
select s.name, s.setting
from pg_settings as s
where s.name in ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'track_counts', 'jit',
                 'max_locks_per_transaction', 'max_connections', 'max_prepared_transactions',
                 'session_replication_role', 'default_transaction_isolation')"""

SNAPSHOTS: Final = """
select h.holder, h.seconds
from (select format('session %%s (%%s)', a.pid, coalesce(nullif(a.application_name, ''), a.backend_type)) as holder,
             extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds
      from pg_stat_activity as a
      where a.backend_xmin is not null and a.pid <> pg_backend_pid()
        and (a.datname = current_database() or a.datname is null)
      union all
      select format('prepared transaction %%s', p.gid), extract(epoch from clock_timestamp() - p.prepared)::float8
      from pg_prepared_xacts as p where p.database = current_database()) as h
where h.seconds >= %(seconds)s
order by h.seconds desc
limit 5"""
"""Who keeps dead rows of this database, for how many seconds; at most five."""

NOTIFICATION_QUEUE: Final = "select pg_notification_queue_usage()"
