# ruff: noqa: S608 - queries are put together from literals of this module
"""What the catalogs say about one schema, as facts that do not depend on the server's major version.

Every query yields `(object, part, properties)`: `table event`, `column digest`, `{"type": "bytea", …}`; the part is
empty for the object itself. Properties at their usual value are left out, so that absent and usual are the same.
Indexes and constraints of a partition go by the names that their table gives them, so that all of them compare alike.

Only catalogs that every role may read are asked, and names resolve in pg_catalog: the caller sets the search path. Of a
column's options only the planner's estimates count; some servers keep notes of their own beside them.
"""

from __future__ import annotations

from typing import Final, LiteralString


def granted(acl: LiteralString, kind: LiteralString, owner: LiteralString) -> LiteralString:
    """SQL that turns an access list, or its default, into an object: holder → sorted privileges.

    `*` marks a grant option. MAINTAIN of the owner is left out, because PostgreSQL 15 and 16 do not know it.
    """
    return f"""
    (select coalesce(jsonb_object_agg(g.holder, g.rights), '{{}}')
     from (select case when a.grantee = 0 then 'PUBLIC' when a.grantee = {owner} then 'the owner'
                       else pg_get_userbyid(a.grantee) end
                  || case when a.grantor <> {owner} then ' (by ' || pg_get_userbyid(a.grantor) || ')' else '' end
                  as holder,
                  jsonb_agg(lower(a.privilege_type) || case when a.is_grantable then '*' else '' end
                            order by a.privilege_type) as rights
           from aclexplode(coalesce({acl}, acldefault({kind}, {owner}))) as a
           where not (a.grantee = {owner} and a.privilege_type = 'MAINTAIN')
           group by 1) as g)"""


_RELATION: Final = """
with relation as (
    select c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.reloptions, c.reltoastrelid, c.relpersistence, c.relam,
           c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.relispartition, c.relpartbound,
           case when n.nspname = %(schema)s then c.relname::text else n.nspname || '.' || c.relname end as shown,
           (select i.inhparent from pg_inherits as i where i.inhrelid = c.oid and c.relispartition) as parent,
           case when c.relispartition then 'partition' else case c.relkind
               when 'r' then 'table' when 'p' then 'table' when 'v' then 'view' when 'm' then 'materialized view'
               when 'S' then 'sequence' when 'f' then 'foreign table' else 'composite type' end end as label
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
      and (n.nspname = %(schema)s or exists (
          select from pg_inherits as i
          join pg_class as p on p.oid = i.inhparent
          join pg_namespace as s on s.oid = p.relnamespace
          where i.inhrelid = c.oid and s.nspname = %(schema)s)))"""

RELATIONS: Final = (
    _RELATION
    + """
select r.label || ' ' || r.shown, '', jsonb_strip_nulls(jsonb_build_object(
    'kind', nullif(r.relkind::text, case r.label when 'table' then 'r' when 'partition' then 'r' when 'view' then 'v'
                                                 when 'sequence' then 'S' end),
    'owner', pg_get_userbyid(r.relowner),
    'persistence', case r.relpersistence when 'u' then 'unlogged' when 't' then 'temporary' end,
    'access method', (select nullif(a.amname, 'heap') from pg_am as a where a.oid = r.relam),
    'options', (select jsonb_agg(o.option order by o.option) from (
        select unnest(r.reloptions) as option
        union all
        select 'toast.' || unnest(t.reloptions) from pg_class as t where t.oid = r.reltoastrelid) as o),
    'row security', case when r.relforcerowsecurity then 'forced' when r.relrowsecurity then 'enabled' end,
    'replica identity', case when r.relkind in ('r', 'p') then nullif(r.relreplident::text, 'd') end,
    'columns', case when r.relkind <> 'S' then (
        select jsonb_agg(a.attname order by a.attnum)
        from pg_attribute as a where a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped) end,
    'partition key', pg_get_partkeydef(r.oid),
    'parent', (select p.relname from pg_class as p where p.oid = r.parent),
    'inherits from', (
        select jsonb_agg(i.inhparent::regclass::text order by i.inhparent::regclass::text)
        from pg_inherits as i where i.inhrelid = r.oid and not r.relispartition),
    'system triggers switched off', (
        select nullif(count(*), 0)
        from pg_trigger as t where t.tgrelid = r.oid and t.tgisinternal and t.tgenabled <> 'O'),
    'sequence', (select jsonb_build_object(
        'type', format_type(s.seqtypid, null), 'start', s.seqstart, 'increment', s.seqincrement,
        'min', s.seqmin, 'max', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle)
        from pg_sequence as s where s.seqrelid = r.oid),
    'belongs to', (
        select d.refobjid::regclass || '.' || a.attname
        from pg_depend as d
        join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where r.relkind = 'S' and d.classid = 'pg_class'::regclass and d.objid = r.oid and d.deptype in ('a', 'i')
          and d.refclassid = 'pg_class'::regclass),
    'privileges', """
    + granted("r.relacl", "case r.relkind when 'S' then 's' else 'r' end::\"char\"", "r.relowner")
    + """
))
from relation as r where r.relkind <> 'c'"""
)

COLUMNS: Final = (
    _RELATION
    + """
select r.label || ' ' || r.shown, 'column ' || a.attname, jsonb_strip_nulls(jsonb_build_object(
    'type', format_type(a.atttypid, a.atttypmod),
    'collation', (select o.collname from pg_collation as o
                  where o.oid = a.attcollation and o.oid <> 'pg_catalog.default'::regcollation),
    'not null', case when not a.attnotnull then null when exists (
        select from pg_constraint as n where n.conrelid = a.attrelid and n.contype = 'n' and n.conkey = array[a.attnum]
          and not n.convalidated) then 'not valid' else 'yes' end,
    'default', pg_get_expr(d.adbin, d.adrelid),
    'generated', case a.attgenerated when 's' then 'stored' when 'v' then 'virtual' end,
    'identity', case a.attidentity when 'a' then 'always' when 'd' then 'by default' end,
    'storage', nullif(a.attstorage::text, t.typstorage::text),
    'compression', nullif(a.attcompression::text, ''),
    'statistics', nullif(a.attstattarget, -1),
    'options', (select jsonb_agg(o.option order by o.option)
                from unnest(a.attoptions) as o (option) where starts_with(o.option, 'n_distinct')),
    'privileges', case when a.attacl is not null then """
    + granted("a.attacl", "'c'", "r.relowner")
    + """ end
))
from relation as r
join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
join pg_type as t on t.oid = a.atttypid
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where r.relkind <> 'S'"""
)

CONSTRAINTS: Final = (
    _RELATION
    + """
select r.label || ' ' || r.shown, 'constraint ' || coalesce(p.conname, k.conname), jsonb_strip_nulls(jsonb_build_object(
    'definition', pg_get_constraintdef(k.oid),
    'not validated', nullif(not k.convalidated, false)))
from relation as r
join pg_constraint as k on k.conrelid = r.oid and k.contype in ('c', 'u', 'p', 'f', 'x')
left join pg_constraint as p on p.oid = k.conparentid
where k.conparentid = 0 or (r.relispartition and (k.contype <> 'f' or k.confrelid = p.confrelid))
union all
select r.label || ' ' || r.shown, 'foreign key of ' || k.conrelid::regclass || ' ' || k.conname,
       jsonb_build_object('definition', pg_get_constraintdef(k.oid))
from pg_constraint as k
join relation as r on r.oid = k.confrelid
where k.contype = 'f' and k.conparentid = 0 and k.conrelid not in (select o.oid from relation as o)"""
)

INDEXES: Final = (
    _RELATION
    + """
select r.label || ' ' || r.shown, 'index ' || coalesce(p.relname, c.relname), jsonb_strip_nulls(jsonb_build_object(
    'unique', nullif(i.indisunique, false),
    'definition', substring(pg_get_indexdef(i.indexrelid) from '(?<= USING ).*$'),
    'invalid', nullif(not (i.indisvalid and i.indisready and i.indislive), false),
    'deferred', nullif(not i.indimmediate, false),
    'replica identity', nullif(i.indisreplident, false)))
from relation as r
join pg_index as i on i.indrelid = r.oid
join pg_class as c on c.oid = i.indexrelid
left join pg_inherits as h on h.inhrelid = i.indexrelid
left join pg_class as p on p.oid = h.inhparent"""
)

TRIGGERS: Final = (
    _RELATION
    + """
select r.label || ' ' || r.shown, 'trigger ' || t.tgname, jsonb_strip_nulls(jsonb_build_object(
    'definition', replace(pg_get_triggerdef(t.oid), ' ON ' || t.tgrelid::regclass || ' ', ' ON its table '),
    'state', case t.tgenabled when 'D' then 'disabled' when 'R' then 'replica' when 'A' then 'always' end))
from relation as r
join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal"""
)

ATTACHED: Final = (
    _RELATION
    + """
select r.label || ' ' || r.shown, 'rule ' || w.rulename, jsonb_build_object('definition', pg_get_ruledef(w.oid))
from relation as r
join pg_rewrite as w on w.ev_class = r.oid
where not (w.rulename = '_RETURN' and r.relkind in ('v', 'm') and w.ev_enabled = 'O')
union all
select r.label || ' ' || r.shown, 'policy ' || p.polname,
       jsonb_build_object('using', pg_get_expr(p.polqual, p.polrelid), 'command', p.polcmd)
from relation as r
join pg_policy as p on p.polrelid = r.oid
union all
select r.label || ' ' || r.shown, 'statistics ' || s.stxname,
       jsonb_build_object('definition', pg_get_statisticsobjdef(s.oid))
from relation as r
join pg_statistic_ext as s on s.stxrelid = r.oid"""
)

FUNCTIONS: Final = (
    """
select 'function ' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')', '',
       jsonb_strip_nulls(jsonb_build_object(
    'kind', case p.prokind when 'p' then 'procedure' when 'a' then 'aggregate' when 'w' then 'window function' end,
    'arguments', pg_get_function_arguments(p.oid),
    'result', pg_get_function_result(p.oid),
    'language', l.lanname,
    'body', 'sha256 ' || encode(sha256(convert_to(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc), 'UTF8')), 'hex'),
    'binary', p.probin,
    'security', case when p.prosecdef then 'definer' else 'invoker' end,
    'volatility', case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
    'parallel', case p.proparallel when 's' then 'safe' when 'r' then 'restricted' end,
    'strict', nullif(p.proisstrict, false),
    'leakproof', nullif(p.proleakproof, false),
    'cost', p.procost,
    'rows', p.prorows,
    'support', nullif(p.prosupport::oid::regproc::text, '-'),
    'settings', (select jsonb_agg(s.setting order by s.setting) from unnest(p.proconfig) as s (setting)),
    'owner', pg_get_userbyid(p.proowner),
    'privileges', """
    + granted("p.proacl", "'f'", "p.proowner")
    + """
))
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
join pg_language as l on l.oid = p.prolang
where n.nspname = %(schema)s"""
)

TYPES: Final = (
    """
select 'type ' || t.typname, '', jsonb_strip_nulls(jsonb_build_object(
    'kind', t.typtype,
    'owner', pg_get_userbyid(t.typowner),
    'base', case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end,
    'not null', nullif(t.typnotnull, false),
    'default', t.typdefault,
    'labels', (select jsonb_agg(e.enumlabel order by e.enumsortorder) from pg_enum as e where e.enumtypid = t.oid),
    'constraints', (select jsonb_agg(pg_get_constraintdef(k.oid) order by k.conname)
                    from pg_constraint as k where k.contypid = t.oid and k.contype = 'c'),
    'privileges', """
    + granted("t.typacl", "'T'", "t.typowner")
    + """
))
from pg_type as t
join pg_namespace as n on n.oid = t.typnamespace
left join pg_class as c on c.oid = t.typrelid
where n.nspname = %(schema)s and t.typcategory <> 'A' and (t.typrelid = 0 or c.relkind = 'c')
union all
select i.type || ' ' || i.identity, '', '{}'
from pg_depend as d
join pg_namespace as n on n.oid = d.refobjid and n.nspname = %(schema)s
cross join pg_identify_object(d.classid, d.objid, 0) as i
where d.refclassid = 'pg_namespace'::regclass
  and d.classid::regclass::text not in (
      'pg_class', 'pg_proc', 'pg_type', 'pg_constraint', 'pg_default_acl', 'pg_statistic_ext',
      'pg_publication_namespace')"""
)

PARTITIONED: Final = """
select p.relname::text, case when n.nspname = %(schema)s then c.relname::text else n.nspname || '.' || c.relname end,
       pg_get_expr(c.relpartbound, c.oid), i.inhdetachpending, pg_relation_size(c.oid)
from pg_class as p
join pg_namespace as s on s.oid = p.relnamespace and s.nspname = %(schema)s
left join pg_inherits as i on i.inhparent = p.oid
left join pg_class as c on c.oid = i.inhrelid
left join pg_namespace as n on n.oid = c.relnamespace
where p.relkind = 'p' and not p.relispartition
order by 1, 2"""
"""Each partitioned table with its partitions: bound, whether it is being detached, size in bytes."""
