# ruff: noqa: E501 - a table: one drift, one line
"""Every drift that the doctor must find: one line plants it, and says which object and which property give it away.

`about` is the property that differs; `missing` and `extra` stand for an object that is gone or does not belong. Drifts
of roles concern the whole server, where other tests run: plant them in a transaction that is rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

MISSING: Final = "missing"
EXTRA: Final = "extra"


@dataclass(frozen=True, slots=True)
class Drift:
    """One drift: how it comes about, and what the doctor must say of it."""

    name: str
    statement: LiteralString
    subject: str
    about: str
    strict: bool = False

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


SLEEP: Final = "function dispatcher_sleep_v1(text)"
RENEW: Final = "function delivery_renew_v1(text, uuid[], bigint[], uuid[], interval)"
NOW: Final = "function clock_now()"
EVENT: Final = "table event"
PIECE: Final = "partition event_0001"
READY: Final = "table delivery_ready"

_EMPTY_TRIGGER: Final[LiteralString] = (
    "create function public.nothing() returns trigger language plpgsql as 'begin return new; end';"
)
_DETACH: Final[LiteralString] = "alter table seapost.event detach partition seapost.event_0001;"

# fmt: off
LOCAL: Final[tuple[Drift, ...]] = (
    # Functions
    Drift("function body changed", "create or replace function seapost.clock_now() returns timestamptz language sql as 'select pg_catalog.now()'", NOW, "body"),
    Drift("function dropped", "drop function seapost.dispatcher_wake_v1", "function dispatcher_wake_v1(text)", MISSING),
    Drift("function added", "create function seapost.backdoor() returns int language sql as 'select 1'", "function backdoor()", EXTRA),
    Drift("function overloaded", "create function seapost.clock_now(int) returns timestamptz language sql as 'select now()'", "function clock_now(integer)", EXTRA),
    Drift("search path removed", "alter function seapost.dispatcher_sleep_v1 reset search_path", SLEEP, "setting search_path"),
    Drift("search path widened", "alter function seapost.dispatcher_sleep_v1 set search_path = public, pg_catalog", SLEEP, "setting search_path"),
    Drift("planner setting removed", "alter function seapost.delivery_renew_v1 reset enable_seqscan", RENEW, "setting enable_seqscan"),
    Drift("definer became invoker", "alter function seapost.dispatcher_sleep_v1 security invoker", SLEEP, "security"),
    Drift("invoker became definer", "alter function seapost.clock_now() security definer", NOW, "security"),
    Drift("function owner changed", "alter function seapost.clock_now() owner to seapost_auditor", NOW, "owner"),
    Drift("volatility changed", "alter function seapost.clock_now() immutable", NOW, "volatility"),
    Drift("function made strict", "alter function seapost.dispatcher_sleep_v1 strict", SLEEP, "strict"),
    Drift("function made leakproof", "alter function seapost.clock_now() leakproof", NOW, "leakproof"),
    Drift("function cost changed", "alter function seapost.clock_now() cost 100000", NOW, "cost"),
    Drift("function made parallel safe", "alter function seapost.dispatcher_sleep_v1 parallel safe", SLEEP, "parallel"),
    Drift("public may execute", "grant execute on function seapost.dispatcher_sleep_v1 to public", SLEEP, "privileges of PUBLIC"),
    Drift("role may execute too much", "grant execute on function seapost.delivery_set_activate_v1 to seapost_producer", "function delivery_set_activate_v1(text, bytea, text)", "privileges of seapost_producer"),
    Drift("role may execute no more", "revoke execute on function seapost.dispatcher_sleep_v1 from seapost_dispatcher", SLEEP, "privileges of seapost_dispatcher"),
    Drift("grant option given", "grant execute on function seapost.dispatcher_sleep_v1 to seapost_dispatcher with grant option", SLEEP, "privileges of seapost_dispatcher"),
    # Grants
    Drift("table granted", "grant select on seapost.event to seapost_auditor", EVENT, "privileges of seapost_auditor"),
    Drift("table granted to public", "grant insert on seapost.delivery_ready to public", READY, "privileges of PUBLIC"),
    Drift("partition granted", "grant delete on seapost.event_0001 to seapost_operator", PIECE, "privileges of seapost_operator"),
    Drift("column granted", "grant update (published_at) on seapost.publication to seapost_dispatcher", "table publication, column published_at", "privileges of seapost_dispatcher"),
    Drift("view granted", "grant select on seapost.outbox_events to seapost_consumer", "view outbox_events", "privileges of seapost_consumer"),
    Drift("view revoked", "revoke select on seapost.outbox_events from seapost_auditor", "view outbox_events", "privileges of seapost_auditor"),
    Drift("owner lost a right", "revoke insert on seapost.event from seapost_owner", EVENT, "privileges of the owner"),
    Drift("sequence granted", "grant usage on sequence seapost.attempt_id to seapost_dispatcher", "sequence attempt_id", "privileges of seapost_dispatcher"),
    Drift("schema open to public", "grant create on schema seapost to public", "schema seapost", "privileges of PUBLIC"),
    Drift("schema closed", "revoke usage on schema seapost from seapost_consumer", "schema seapost", "privileges of seapost_consumer"),
    Drift("schema owner changed", "alter schema seapost owner to seapost_operator", "schema seapost", "owner"),
    Drift("default privileges added", "alter default privileges for role seapost_owner in schema seapost grant select on tables to public", "default privileges of seapost_owner on tables in seapost", EXTRA),
    Drift("default privileges lost", "alter default privileges for role seapost_owner grant execute on functions to public", "default privileges of seapost_owner on functions", MISSING),
    # Triggers
    Drift("trigger disabled", "alter table seapost.audit_record disable trigger immutable", "table audit_record, trigger immutable", "state"),
    Drift("trigger disabled on a partition", "alter table seapost.event_0001 disable trigger immutable", f"{PIECE}, trigger immutable", "state"),
    Drift("trigger always", "alter table seapost.audit_record enable always trigger immutable", "table audit_record, trigger immutable", "state"),
    Drift("trigger replica", "alter table seapost.audit_record enable replica trigger immutable", "table audit_record, trigger immutable", "state"),
    Drift("trigger dropped", "drop trigger keep on seapost.publication", "table publication, trigger keep", MISSING),
    Drift("trigger dropped on a partition", "drop trigger keep on seapost.event_0001", f"{PIECE}, trigger keep", MISSING),
    Drift("trigger added", _EMPTY_TRIGGER + "create trigger look before insert on seapost.event for each row execute function public.nothing()", f"{EVENT}, trigger look", EXTRA),
    Drift("trigger of another function", _EMPTY_TRIGGER + "create or replace trigger immutable before update or delete on seapost.audit_record for each row execute function public.nothing()", "table audit_record, trigger immutable", "definition"),
    Drift("trigger with a condition", "create or replace trigger immutable before delete on seapost.delivery_quarantine for each row when (old.case_id is null) execute function seapost.refuse_change()", "table delivery_quarantine, trigger immutable", "definition"),
    Drift("keys of the strict level switched off", "alter table seapost.delivery_attempt_start_0001 disable trigger all", "partition delivery_attempt_start_0001", "system triggers switched off", strict=True),
    Drift("strict trigger dropped", "drop trigger complete on seapost.delivery", "table delivery, trigger complete", MISSING, strict=True),
    Drift("strict key dropped", "alter table seapost.publication drop constraint publication_event", "table publication, constraint publication_event", MISSING, strict=True),
    # Constraints
    Drift("check dropped", "alter table seapost.delivery_lease drop constraint delivery_lease_company_check", "table delivery_lease, constraint delivery_lease_company_check", MISSING),
    Drift("check weakened", "alter table seapost.delivery_lease drop constraint delivery_lease_company_check, add constraint delivery_lease_company_check check (company >= 0)", "table delivery_lease, constraint delivery_lease_company_check", "definition"),
    Drift("check not validated", "alter table seapost.delivery_lease drop constraint delivery_lease_company_check, add constraint delivery_lease_company_check check (company >= 1) not valid", "table delivery_lease, constraint delivery_lease_company_check", "not validated"),
    Drift("check added", "alter table seapost.delivery_ready add check (attempt_count < 3)", f"{READY}, constraint delivery_ready_attempt_count_check1", EXTRA),
    Drift("unique dropped", "alter table seapost.delivery_set_version drop constraint delivery_set_version_definition_digest_key", "table delivery_set_version, constraint delivery_set_version_definition_digest_key", MISSING),
    Drift("primary key replaced", "alter table seapost.delivery_lease drop constraint delivery_lease_pkey, add constraint delivery_lease_pkey primary key (destination, event_id)", "table delivery_lease, constraint delivery_lease_pkey", "definition"),
    Drift("foreign key dropped", "alter table seapost.delivery_set_event drop constraint delivery_set_event_definition_id_fkey", "table delivery_set_event, constraint delivery_set_event_definition_id_fkey", MISSING),
    Drift("foreign key from outside", "create table public.mine (id uuid references seapost.event)", f"{EVENT}, foreign key of public.mine mine_id_fkey", EXTRA),
    # Indexes
    Drift("index dropped", "drop index seapost.delivery_ready_claim", f"{READY}, index delivery_ready_claim", MISSING),
    Drift("index predicate changed", "drop index seapost.delivery_set_version_one_active; create unique index delivery_set_version_one_active on seapost.delivery_set_version ((true)) where status = 'retired'", "table delivery_set_version, index delivery_set_version_one_active", "definition"),
    Drift("index columns in another order", "drop index seapost.delivery_ready_claim; create index delivery_ready_claim on seapost.delivery_ready (destination, available_at, suspect, created_at, event_id)", f"{READY}, index delivery_ready_claim", "definition"),
    Drift("index of another method", "drop index seapost.delivery_lease_expiry; create index delivery_lease_expiry on seapost.delivery_lease using brin (expires_at)", "table delivery_lease, index delivery_lease_expiry", "definition"),
    Drift("index not unique", "drop index seapost.delivery_set_version_one_active; create index delivery_set_version_one_active on seapost.delivery_set_version ((true)) where status = 'active'", "table delivery_set_version, index delivery_set_version_one_active", "unique"),
    Drift("index invalid", "update pg_catalog.pg_index set indisvalid = false where indexrelid = 'seapost.delivery_ready_claim'::regclass", f"{READY}, index delivery_ready_claim", "invalid"),
    Drift("index fill factor changed", "alter index seapost.delivery_ready_claim set (fillfactor = 50)", f"{READY}, index delivery_ready_claim", "definition"),
    Drift("index added", "create index more on seapost.event_0001 (created_at)", f"{PIECE}, index more", EXTRA),
    # Tables and columns
    Drift("fill factor changed", "alter table seapost.delivery_ready set (fillfactor = 50)", READY, "option fillfactor"),
    Drift("autovacuum setting changed", "alter table seapost.delivery_ready set (autovacuum_vacuum_threshold = 50)", READY, "option autovacuum_vacuum_threshold"),
    Drift("autovacuum switched off", "alter table seapost.event_0001 set (autovacuum_enabled = off, toast.autovacuum_enabled = off)", PIECE, "option toast.autovacuum_enabled"),
    Drift("column type changed", "alter table seapost.delivery_lease alter company type bigint", "table delivery_lease, column company", "type"),
    Drift("column collation changed", 'alter table seapost.schema_object alter release type text collate "default"', "table schema_object, column release", "collation"),
    Drift("column default changed", "alter table seapost.delivery_set_version alter status set default 'active'", "table delivery_set_version, column status", "default"),
    Drift("column default of a partition", "alter table seapost.event_0001 alter digest_algorithm set default 2", f"{PIECE}, column digest_algorithm", "default"),
    Drift("generated column lost", "alter table seapost.event alter digest drop expression", f"{EVENT}, column digest", "generated"),
    Drift("identity lost", "alter table seapost.audit_record alter audit_id drop identity", "table audit_record, column audit_id", "identity"),
    Drift("identity loosened", "alter table seapost.audit_record alter audit_id set generated by default", "table audit_record, column audit_id", "identity"),
    Drift("not null dropped", "alter table seapost.delivery_lease alter token drop not null", "table delivery_lease, column token", "not null"),
    Drift("column added", "alter table seapost.event add note text", f"{EVENT}, column note", EXTRA),
    Drift("column renamed", "alter table seapost.delivery_lease rename company to companions", "table delivery_lease, column company", MISSING),
    Drift("columns in another order", "alter table seapost.schema_object drop release; alter table seapost.schema_object add release text collate \"C\" not null default ''; alter table seapost.schema_object alter release drop default", "table schema_object", "columns"),
    Drift("column storage changed", "alter table seapost.inbox_receipt_0001 alter receipt_candidate set storage external", "partition inbox_receipt_0001, column receipt_candidate", "storage"),
    Drift("table unlogged", "alter table seapost.delivery_ready set unlogged", READY, "persistence"),
    Drift("table added", "create table seapost.mine (id int)", "table mine", EXTRA),
    Drift("table dropped", "drop table seapost.aggregate_revision", "table aggregate_revision", MISSING),
    Drift("table owner changed", "alter table seapost.delivery_lease owner to seapost_dispatcher", "table delivery_lease", "owner"),
    Drift("table inherits", "create table public.base (event_id uuid not null); alter table seapost.delivery_ready inherit public.base", READY, "inherits from"),
    Drift("table inherited from", "create table public.heir () inherits (seapost.delivery_ready)", "table public.heir", EXTRA),
    Drift("row security enabled", "alter table seapost.delivery_ready enable row level security", READY, "row security"),
    Drift("policy added", "create policy all_mine on seapost.delivery_ready using (true)", f"{READY}, policy all_mine", EXTRA),
    Drift("rule added", "create rule swallow as on insert to seapost.delivery_ready do instead nothing", f"{READY}, rule swallow", EXTRA),
    Drift("statistics added", "create statistics seapost.both (dependencies) on destination, suspect from seapost.delivery_ready", f"{READY}, statistics both", EXTRA),
    Drift("replica identity changed", "alter table seapost.delivery_lease replica identity nothing", "table delivery_lease", "replica identity"),
    # Partitions
    Drift("partition detached", _DETACH, PIECE.replace("partition", "table"), EXTRA),
    Drift("last partition gone", _DETACH, EVENT, "partitions"),
    Drift("gap between partitions", _DETACH + "create table seapost.event_a partition of seapost.event for values from (minvalue) to ('00000000-0000-0000-0000-000000000000'); create table seapost.event_b partition of seapost.event for values from ('70000000-0000-0000-0000-000000000000') to (maxvalue)", EVENT, "partitions"),
    Drift("partition from elsewhere", _DETACH + "create table public.event_x partition of seapost.event for values from (minvalue) to (maxvalue)", "partition public.event_x, trigger keep", MISSING),
    # Views, sequences, types and everything else
    Drift("view changed", "create or replace view seapost.guard_levels as select level || '' as level, changed_at from seapost.guard_level", "view guard_levels", "definition"),
    Drift("view invoker", "alter view seapost.outbox_events set (security_invoker = true)", "view outbox_events", "option security_invoker"),
    Drift("view dropped", "drop view seapost.audit_places", "view audit_places", MISSING),
    Drift("view added", "create view seapost.everything as select * from seapost.event", "view everything", EXTRA),
    Drift("view owner changed", "alter view seapost.outbox_events owner to seapost_auditor", "view outbox_events", "owner"),
    Drift("materialized view added", "create materialized view seapost.copied as select 1 as one", "materialized view copied", EXTRA),
    Drift("sequence cache changed", "alter sequence seapost.attempt_id cache 1", "sequence attempt_id", "sequence"),
    Drift("sequence cycles", "alter sequence seapost.attempt_id maxvalue 1000 cycle", "sequence attempt_id", "sequence"),
    Drift("sequence owner changed", "alter sequence seapost.attempt_id owner to seapost_dispatcher", "sequence attempt_id", "owner"),
    Drift("type added", "create type seapost.colour as enum ('red')", "type colour", EXTRA),
    Drift("domain added", "create domain seapost.even as int check (value % 2 = 0)", "type even", EXTRA),
    Drift("operator added", "create operator seapost.=== (leftarg = text, rightarg = text, function = pg_catalog.starts_with)", "operator seapost.===(pg_catalog.text,pg_catalog.text)", EXTRA),
    Drift("collation added", 'create collation seapost.mine from "C"', "collation seapost.mine", EXTRA),
    Drift("event trigger", "create function public.watch() returns event_trigger language plpgsql as 'begin end'; create event trigger watch on ddl_command_start execute function public.watch()", "event trigger watch", EXTRA),
)

OF_THE_SERVER: Final[tuple[Drift, ...]] = (
    Drift("role may log in", "alter role seapost_producer login", "role seapost_producer", "login"),
    Drift("owner may log in", "alter role seapost_owner login", "role seapost_owner", "login"),
    Drift("role is superuser", "alter role seapost_dispatcher superuser", "role seapost_dispatcher", "superuser"),
    Drift("role bypasses row security", "alter role seapost_auditor bypassrls", "role seapost_auditor", "bypass row security"),
    Drift("role creates roles", "alter role seapost_operator createrole", "role seapost_operator", "create role"),
    Drift("role creates databases", "alter role seapost_operator createdb", "role seapost_operator", "create database"),
    Drift("role replicates", "alter role seapost_consumer replication", "role seapost_consumer", "replication"),
    Drift("role does not inherit", "alter role seapost_consumer noinherit", "role seapost_consumer", "inherit"),
    Drift("role is limited", "alter role seapost_producer connection limit 3", "role seapost_producer", "connection limit"),
    Drift("role has a setting", "alter role seapost_dispatcher set search_path = public", "role seapost_dispatcher", "setting search_path"),
    Drift("role is a member of another of ours", "grant seapost_owner to seapost_dispatcher", "role seapost_dispatcher", "member of"),
    Drift("role is a member of a foreign one", "grant pg_read_all_data to seapost_producer", "role seapost_producer", "member of"),
    Drift("role renamed", "alter role seapost_auditor rename to seapost_watcher", "role seapost_auditor", MISSING),
)
# fmt: on
