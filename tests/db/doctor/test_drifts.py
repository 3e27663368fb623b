"""The doctor finds every drift that can be planted, names the object and what differs, and would exit with 1."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from seapost.cli.commands.doctor import exit_code
from seapost.cli.exit_codes import ExitCode
from seapost.cli.main import run
from seapost.database.doctor import Finding, FindingKind, examine
from seapost.database.installer import GuardLevel
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.drifts import EXTRA, LOCAL, MISSING, OF_THE_SERVER, Drift

EXISTENCE = {MISSING: ("present", "missing"), EXTRA: ("not there", "present")}


@pytest.fixture(scope="module")
def databases(database_server: DatabaseServer) -> Iterator[dict[bool, TestDatabase]]:
    """Give a strict and a lean database to the module; no drift is ever committed there."""
    made = {level is GuardLevel.STRICT: database_server.create(level) for level in GuardLevel}
    yield made
    for one in made.values():
        database_server.drop(one)


def _assert_told(drift: Drift, findings: list[Finding]) -> None:
    """Fail unless the finding is there, once, with both sides of the difference."""
    told = [one for one in findings if one.kind is FindingKind.DRIFT and one.subject == drift.subject]
    if drift.about in EXISTENCE:
        sides = [(one.expected, one.found) for one in told if not one.about]
        assert sides == [EXISTENCE[drift.about]], findings
    else:
        (side,) = [(one.expected, one.found) for one in told if one.about == drift.about] or [("not", "told")]
        assert side != ("not", "told"), findings
        assert side[0] != side[1]


@pytest.mark.parametrize("drift", [*LOCAL, *OF_THE_SERVER], ids=str)
async def test_a_drift_is_found(drift: Drift, databases: dict[bool, TestDatabase]) -> None:
    """Planted and examined in one transaction; once it is rolled back, nothing drifts."""
    connection = await databases[drift.strict].connect_async(autocommit=True)
    async with connection.transaction(force_rollback=True):
        await connection.execute(drift.statement)
        examination = await examine(connection)
    await connection.close()
    _assert_told(drift, list(examination.findings))
    assert exit_code(examination.findings) is ExitCode.FAILED


def test_a_drift_ends_the_command_with_1(database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> None:
    """The command finds what was committed by somebody else; without it, the exit code is 0."""
    assert run(["doctor", "--json", "--dsn", database.dsn]) is ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["clean"] is True
    with database.connect() as connection:
        connection.execute("alter table seapost.audit_record disable trigger immutable")
    assert run(["doctor", "--json", "--dsn", database.dsn]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["clean"] is False
    assert [one for one in document["findings"] if one["kind"] == "drift"] == [
        {
            "kind": "drift",
            "subject": "table audit_record, trigger immutable",
            "about": "state",
            "expected": None,
            "found": "disabled",
            "text": "table audit_record, trigger immutable: state should be unset and is disabled",
        }
    ]


def test_the_list_of_drifts_is_long() -> None:
    """No drift is listed twice, and the list is not shortened by accident."""
    names = [drift.name for drift in (*LOCAL, *OF_THE_SERVER)]
    assert len(set(names)) == len(names) >= 100
