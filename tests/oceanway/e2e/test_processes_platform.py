"""A whole installation: five databases, thirteen processes, the rights of each, and how they start, die and stop."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import conninfo

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.main import run
from oceanway.demo import supervise
from oceanway.demo.processes import CRASHES_MAX, DemoFailed, Processes
from oceanway.demo.supervise import Platform
from oceanway.installation.layout import DISPATCHED, OWNERS, PROCESSES, Database, Kind, Process
from oceanway.installation.logins import processes_of
from oceanway.installation.settings import load_settings
from seapost.testing.databases import DatabaseServer
from tests.kit.eventually import eventually

OWNER_TABLES = """
select c.oid::regclass::text from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'S') and case c.relkind
    when 'S' then has_sequence_privilege(%(login)s, c.oid, 'usage,select,update')
    else has_table_privilege(%(login)s, c.oid, %(rights)s) end"""
FUNCTIONS = """
select p.oid::regproc::text from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = any(%(schemas)s) and has_function_privilege(%(login)s, p.oid, 'execute')"""
WRITES = "insert,update,delete,truncate"

each_process = pytest.mark.parametrize("process", PROCESSES, ids=lambda one: one.workload)


@pytest.fixture(scope="module")
def platform(database_server: DatabaseServer) -> Iterator[Platform]:
    """Give an installation on the tests' server."""
    with supervise.open_folder() as folder, supervise.open_platform(folder, database_server.dsn()) as made:
        yield made


@pytest.fixture(scope="module")
def processes(platform: Platform) -> Iterator[Processes]:
    """Start the thirteen processes."""
    running = Processes(platform.folder, supervise.environment())
    try:
        supervise.start(platform, running)
        yield running
    finally:
        running.close()


@contextmanager
def logged_in(platform: Platform, process: Process) -> Generator[psycopg.Connection]:
    """A session of a process, as itself."""
    dsn = load_settings(platform.config, {}).process_dsn(process)
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def functions_of(platform: Platform, process: Process, *schemas: str) -> set[str]:
    """What a process may execute in these schemas."""
    with psycopg.connect(platform.dsns[process.database]) as connection:
        parameters = {"schemas": list(schemas), "login": process.login}
        return {row[0] for row in connection.execute(FUNCTIONS, parameters)}


def platform_sessions(platform: Platform) -> set[tuple[str, int]]:
    """The sessions of the three processes that are killed here: of their pools, not of their start."""
    with psycopg.connect(platform.dsns[Database.CORE]) as connection:
        names = ["oceanway_serve_metering", "oceanway_dispatch_billing", "oceanway_work_finalization"]
        rows = connection.execute(
            "select distinct on (usename) usename::text, pid from pg_stat_activity"
            " where usename = any(%s) and application_name <> 'oceanway-start' order by usename, backend_start desc",
            (names,),
        ).fetchall()
    return {(row[0], row[1]) for row in rows}


@pytest.mark.req("GEN-07")
def test_an_installation_is_made_once(platform: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    """A second `oceanway init` finds everything as it should be."""
    assert run(["init", "--config", str(platform.config), "--json"]) == 0
    out, _ = capsys.readouterr()
    assert '"installed"' not in out
    assert "made" not in out


@pytest.mark.req("SEC-01", "SEC-06", "GEN-07")
@each_process
def test_a_process_writes_no_table_and_reads_none_unless_it_audits(platform: Platform, process: Process) -> None:
    """Runtime roles hold functions only; the auditor reads and can change nothing."""
    schemas = ["seapost", *OWNERS[process.database]]
    with psycopg.connect(platform.dsns[process.database]) as connection:
        writable = connection.execute(
            OWNER_TABLES, {"schemas": schemas, "login": process.login, "rights": WRITES}
        ).fetchall()
        readable = connection.execute(
            OWNER_TABLES, {"schemas": schemas, "login": process.login, "rights": "select"}
        ).fetchall()
    assert writable == []
    assert bool(readable) == (process.kind is Kind.AUDIT)


SHAPES_OF_THE_AUDITOR = {Database.BILLING: {"billing.settlement_quint"}}
"""Pure functions that the views of the settlement chain call as their reader (ORD-08)."""


@pytest.mark.req("SEC-01", "SEC-06")
@each_process
def test_a_process_executes_what_its_kind_needs_and_no_more(platform: Platform, process: Process) -> None:
    """Only a dispatcher moves deliveries; only an owner's functions append; each sees its own owner's functions."""
    kernel = functions_of(platform, process, "seapost")
    owners = functions_of(platform, process, *OWNERS[process.database])
    assert ("seapost.delivery_claim_v1" in kernel) == (process.kind is Kind.DISPATCH)
    assert "seapost.outbox_append_v1" not in kernel
    assert ("seapost.inbox_record_v1" in kernel) == (process.kind is Kind.SERVE)
    if process.kind is Kind.DISPATCH:
        assert owners == set()
    elif process.kind is Kind.AUDIT:
        assert owners == SHAPES_OF_THE_AUDITOR.get(process.database, set())
    elif process.kind is Kind.SERVE:
        assert owners
        assert {name.partition(".")[0] for name in owners} == {process.subject}


@pytest.mark.req("GEN-07", "SEC-06")
def test_a_process_reaches_its_own_database_and_no_other_one(platform: Platform) -> None:
    """Nobody has an account in another owner's database, and the public has none at all."""
    with psycopg.connect(platform.dsns[Database.CORE]) as connection:
        for database, dsn in platform.dsns.items():
            name = conninfo.conninfo_to_dict(dsn)["dbname"]
            for process in PROCESSES:
                row = connection.execute(
                    "select has_database_privilege(%s, %s, 'connect')", (process.login, name)
                ).fetchone()
                assert row == (process in processes_of(database),), (process.login, name)


@pytest.mark.req("SET-37")
@each_process
def test_a_process_logs_in_as_itself(platform: Platform, process: Process) -> None:
    """Its settings lead it into its database under its own name."""
    with logged_in(platform, process) as connection:
        assert connection.execute("select session_user, current_user").fetchone() == (process.login, process.login)


def test_no_password_is_in_the_settings_or_readable_by_others(platform: Platform) -> None:
    """Passwords and keys are files of their user alone."""
    passwords = platform.folder / ".oceanway" / "pgpass"
    assert passwords.stat().st_mode & 0o777 == 0o600
    assert len(passwords.read_text().splitlines()) == len(PROCESSES)
    for line in passwords.read_text().splitlines():
        assert line.rpartition(":")[2] not in platform.config.read_text()


def test_the_status_of_an_idle_installation_is_clean(platform: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing waits and nothing is quarantined."""
    assert run(["status", "--config", str(platform.config), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["destinations"]
    expected = [(database.value, name) for database in Database for name in DISPATCHED[database]]
    assert sorted((one["database"], one["destination"]) for one in shown) == sorted(expected)
    assert {(one["pending"], one["leased"], one["quarantined"]) for one in shown} == {(0, 0, 0)}


def test_an_identifier_that_nobody_knows_has_no_timeline(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is found for it, and no other identifier is offered."""
    arguments = ["timeline", "run", "no-such-run", "--config", str(platform.config), "--json"]
    assert run(arguments) == ExitCode.NOT_FOUND
    assert json.loads(capsys.readouterr().out) == {"operations": [], "truncated": False}


@pytest.mark.req("GEN-14")
def test_a_killed_process_is_started_again_and_all_of_them_stop_in_order(
    platform: Platform, processes: Processes
) -> None:
    """SIGKILL ends each; its successor comes up; then SIGTERM stops every process with exit code 0."""
    sessions = platform_sessions(platform)
    for name in ("serve.metering", "dispatch.billing", "work.finalization"):
        before = processes.members[name].process_id
        assert processes.kill(name)
        member = processes.members[name]
        assert member.process_id not in {None, before}
        assert (member.kills, member.starts, member.crashes) == (1, 2, 0)
    assert processes.kills == 3
    eventually(lambda: len(platform_sessions(platform) - sessions) >= 3, what="sessions of the successors")
    codes = supervise.stop(processes)
    assert codes == dict.fromkeys(processes.members, 0), {
        name: processes.members[name].last_lines() for name, code in codes.items() if code
    }


def test_a_process_that_does_not_stay_up_ends_the_run(platform: Platform, processes: Processes) -> None:
    """A worker with a mistake in its command line is started again some times, and then told about."""
    processes.start("broken", "serve", "core", "--config", str(platform.config))
    with pytest.raises(DemoFailed, match="exit code 2"):
        eventually(processes.tend, what="the end of the run")
    assert processes.members["broken"].starts == CRASHES_MAX + 1
    processes.members["broken"].wanted = False
