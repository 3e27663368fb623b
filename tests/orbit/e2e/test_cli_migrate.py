"""`orbit migrate`: what it applies, and everything that it refuses, with the exit codes of MIG-08, MIG-20, MIG-21."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
import pytest

from orbit.cli import main
from orbit.cli.exit_codes import ExitCode
from orbit.store import migrations
from orbit.store.schema import orbit_tree
from seapost.database.installer.tree import read_tree
from tests.kit.commands import orbit
from tests.kit.database import TestDatabase

Command = Callable[..., dict[str, Any]]

NEWEST: Final = max(one.key.number for one in read_tree(orbit_tree()).migrations)

DAMAGES: Final[dict[str, tuple[LiteralString, ExitCode]]] = {
    "changed file": (
        "update orbit.schema_migration set checksum = repeat('0', 64) where number = 7",
        ExitCode.HISTORY,
    ),
    "gap": ("delete from orbit.schema_migration where number = 7", ExitCode.HISTORY),
    "newer database": (
        "insert into orbit.schema_migration values (9999, 'pre', 'later', repeat('a', 64), '9', now(), now())",
        ExitCode.HISTORY,
    ),
    "dirty": ("update orbit.schema_migration set finished_at = null where number = 13", ExitCode.DIRTY),
}


def _damage(database: TestDatabase, statement: LiteralString) -> None:
    """Do what nobody may do; the history is kept by triggers, so they are off here."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        _ = connection.execute("set session_replication_role = replica")
        _ = connection.execute(statement)


@pytest.fixture
def command(orbit_database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a call that runs a command to its end in this process and returns the JSON that it printed."""

    def run(*arguments: str, code: ExitCode = ExitCode.DONE) -> dict[str, Any]:
        assert main.run([*arguments, "--dsn", orbit_database.dsn, "--json"]) is code
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.req("orbit:OPS-02", "orbit:MIG-09", "orbit:MIG-19", "F85")
def test_the_program_migrates_an_empty_database_and_again_changes_nothing(
    orbit_empty_database: TestDatabase, tmp_path: Path
) -> None:
    """Before: pending, and not verified. After: one line per migration, all applied, verified; again: unchanged."""
    variables = {"ORBIT_DATABASE_URL": orbit_empty_database.dsn}

    def run(*arguments: str) -> tuple[int, Any]:
        done = orbit("migrate", *arguments, "--json", folder=tmp_path, env=variables)
        assert done.stderr == ""
        return done.code, done.document

    assert run("verify")[0] == ExitCode.CHECK_FAILED
    code, first = run("up")
    assert (code, first["changed"], first["version_after"]) == (0, True, NEWEST)
    assert run("up")[1]["changed"] is False
    code, shown = run("status")
    assert code == 0
    assert {one["state"] for one in shown["migrations"]} == {"applied"}
    assert [one["version"] for one in shown["migrations"]] == list(range(1, NEWEST + 1))
    assert run("verify") == (0, {"verified": True, "faults": []})


@pytest.mark.req("orbit:OPS-02")
def test_status_is_one_line_per_migration(orbit_database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> None:
    """Version, name, state and checksum, aligned, in the order of versions."""
    assert main.run(["migrate", "status", "--dsn", orbit_database.dsn]) is ExitCode.DONE
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["version", "name", "state", "checksum"]
    expected = [f"{one.version:06d} {one.name} applied {one.checksum}" for one in migrations.status(orbit_database.dsn)]
    assert [" ".join(line.split()) for line in lines] == expected


@pytest.mark.req("orbit:MIG-05", "orbit:MIG-07", "orbit:MIG-08", "orbit:T-M03")
def test_up_refuses_while_a_write_node_is_connected(orbit_database: TestDatabase, command: Command) -> None:
    """Exit code 3, and who it is; a connection of another name does not matter; `--allow-active-writers` overrules."""
    with psycopg.connect(orbit_database.dsn, application_name="orbit-server-7"):
        refused = command("migrate", "up", code=ExitCode.ACTIVE_WRITERS)
        assert refused["error"]["exitCode"] == 3
        assert "orbit-server-7" in refused["error"]["message"]
        assert command("migrate", "up", "--allow-active-writers")["changed"] is False
    with psycopg.connect(orbit_database.dsn, application_name="orbit-client"):
        _ = command("migrate", "up")


@pytest.mark.req("orbit:MIG-20", "orbit:MIG-21", "orbit:T-M04", "F85")
@pytest.mark.parametrize("damage", DAMAGES)
def test_up_and_verify_refuse_a_history_that_is_not_ours(
    orbit_database: TestDatabase, command: Command, damage: str
) -> None:
    """A changed file, a gap and a newer database are 5, a dirty row is 4; nothing is repaired by itself."""
    statement, code = DAMAGES[damage]
    _damage(orbit_database, statement)
    before = migrations.status(orbit_database.dsn)
    assert command("migrate", "up", code=code)["error"]["exitCode"] == code
    assert command("migrate", "verify", code=code)["verified"] is False
    assert migrations.status(orbit_database.dsn) == before


@pytest.mark.req("orbit:MIG-20", "orbit:OPS-02", "orbit:T-C09")
def test_a_dirty_migration_is_settled_by_hand(orbit_database: TestDatabase, command: Command) -> None:
    """`resolve` needs a reason and a dirty version; after it `up` and `verify` go on."""
    _damage(orbit_database, DAMAGES["dirty"][0])
    settle = ("migrate", "resolve", "--state", "applied", "--reason", "its tables are there")
    assert command(*settle, "--version", "12", code=ExitCode.SETTING)["error"]["kind"] == "InvalidSetting"
    _ = command("migrate", "up", code=ExitCode.DIRTY)
    assert command(*settle, "--version", "13")["state"] == "applied"
    _ = command("migrate", "up")
    _ = command("migrate", "verify")
