"""`orbit bootstrap`, `credentials`, `queues`, `quotas`: what they make, what they leave alone, what they show once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
import pytest

from orbit.access.administration import EVENT_ACTIONS, TASK_ACTIONS
from orbit.cli import main
from orbit.cli.exit_codes import ExitCode
from tests.kit.commands import orbit
from tests.kit.database import TestDatabase
from tests.kit.orbit.scene import Credential, Scene

Row = tuple[Any, ...]
Command = Callable[..., dict[str, Any]]

BOOTSTRAP: Final = ("bootstrap", "--namespace", "shop", "--application", "web", "--queue", "billing")


@pytest.fixture
def command(orbit_database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a call that runs a command to its end in this process and returns the JSON that it printed."""

    def run(*arguments: str, code: ExitCode = ExitCode.DONE) -> dict[str, Any]:
        assert main.run([*arguments, "--dsn", orbit_database.dsn, "--json"]) is code
        return json.loads(capsys.readouterr().out)

    return run


def _rows(database: TestDatabase, query: LiteralString, *arguments: object) -> list[Row]:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        return connection.execute(query, arguments or None).fetchall()


@pytest.mark.req("orbit:OPS-01", "orbit:AUT-07", "orbit:AUT-08", "orbit:JRN-16", "orbit:T-E11", "F85")
def test_bootstrap_makes_what_is_missing_and_changes_no_credential(
    orbit_database: TestDatabase, tmp_path: Path
) -> None:
    """The real program: one JSON object with a token; event access only when asked for; older rows stay."""
    variables = {"ORBIT_DATABASE_URL": orbit_database.dsn}
    plain = orbit(*BOOTSTRAP, folder=tmp_path, env=variables)
    assert (plain.code, plain.stderr) == (0, "")
    first = plain.document
    assert list(first) == ["namespace_id", "application_id", "queues", "credential_id", "actions", "token"]
    assert first["actions"] == list(TASK_ACTIONS)
    before = _rows(orbit_database, "select c::text from orbit.credentials as c")

    second = orbit(*BOOTSTRAP, "--queue", "mail", "--event-access", folder=tmp_path, env=variables).document
    assert second["actions"] == [*TASK_ACTIONS, *EVENT_ACTIONS]
    assert (second["namespace_id"], second["application_id"]) == (first["namespace_id"], first["application_id"])
    assert [queue["name"] for queue in second["queues"]] == ["billing", "mail"]
    assert before[0] in _rows(orbit_database, "select c::text from orbit.credentials as c")
    streams = _rows(orbit_database, "select namespace_id, last_sequence from orbit.event_streams")
    assert streams == [(first["namespace_id"], 0)]


@pytest.mark.req("orbit:AUT-14", "orbit:T-E11", "orbit:T-P09")
def test_a_token_is_shown_once_and_stored_as_its_digest(orbit_database: TestDatabase, command: Command) -> None:
    """What is stored is the SHA-256 of what was printed, and the token occurs nowhere else."""
    made = command(*BOOTSTRAP)
    rows = _rows(orbit_database, "select token_sha256 from orbit.credentials")
    assert rows == [(hashlib.sha256(made["token"].encode()).digest(),)]
    audit = _rows(orbit_database, "select a::text from orbit.audit_log as a")
    assert audit
    assert all(made["token"] not in text for (text,) in audit)


@pytest.mark.req("orbit:OPS-07", "orbit:AUT-13")
def test_a_credential_is_issued_with_exactly_what_was_named(command: Command) -> None:
    """Actions, queues and end are those of the command line; an unknown queue is refused with its code."""
    _ = command(*BOOTSTRAP)
    issue = ("credentials", "issue", "--application", "web", "--name", "results")
    made = command(*issue, "--action", "events:manage", "--action", "events:consume", "--queue", "billing")
    assert made["actions"] == ["events:manage", "events:consume"]
    assert [queue["name"] for queue in made["queues"]] == ["billing"]
    assert made["token"].startswith("orbit_")
    everywhere = command(*issue, "--action", "tasks:work", "--all-queues", "--expires-in", "60")
    assert everywhere["all_queues"] is True
    assert everywhere["expires_at"] is not None
    refused = command(*issue, "--action", "tasks:work", "--queue", "nowhere", code=ExitCode.NOT_FOUND)
    assert refused["error"]["kind"] == "QUEUE_NOT_FOUND"


@pytest.mark.req("orbit:OPS-04", "orbit:AUT-09", "orbit:T-N04")
def test_a_rotated_credential_does_not_see_what_its_predecessor_owns(orbit_scene: Scene, command: Command) -> None:
    """Same actions and scope, but another owner: the subscription does not exist for it; the old one still has it."""
    subscription = orbit_scene.subscribe()
    old = orbit_scene.owner
    made = command("credentials", "rotate", old.credential_id, "--grace", "60")
    new = Credential(made["credential_id"], made["token"])
    assert made["rotated_from"] == old.credential_id
    query: LiteralString = "select orbit.subscription_get_v1(%s, %s)"
    assert orbit_scene.body(query, old.sha256, subscription)["subscription_id"] == subscription
    with pytest.raises(psycopg.Error) as refused:
        _ = orbit_scene.body(query, new.sha256, subscription)
    assert refused.value.sqlstate == "OB016"
    listed: LiteralString = "select * from orbit.subscription_list_v1(%s, null, null, 50, null, null)"
    assert orbit_scene.rows(listed, new.sha256) == []
    with pytest.raises(psycopg.Error) as taken:
        _ = orbit_scene.lease(subscription, credential=new)
    assert taken.value.sqlstate == "OB016"


@pytest.mark.req("orbit:OPS-04", "orbit:AUT-12")
def test_a_credential_ends_with_its_rotation_or_its_revocation(orbit_scene: Scene, command: Command) -> None:
    """Without grace the old one is refused at once, and so is a revoked one."""
    rotated, revoked = orbit_scene.issue("rotated"), orbit_scene.issue("revoked")
    _ = command("credentials", "rotate", rotated.credential_id)
    again = command("credentials", "revoke", revoked.credential_id)
    assert command("credentials", "revoke", revoked.credential_id) == again
    for credential in (rotated, revoked):
        with pytest.raises(psycopg.Error) as refused:
            orbit_scene.run("select orbit.access_check_v1(%s, 'tasks:read')", credential.sha256)
        assert refused.value.sqlstate == "OB001"
    assert command("credentials", "revoke", "cred_nobody", code=ExitCode.FAILED)["error"]["kind"] == "VALIDATION_FAILED"


@pytest.mark.req("orbit:OPS-04", "orbit:TSK-07")
def test_queues_are_made_once_and_quotas_come_and_go(command: Command) -> None:
    """A second queue of the name is refused; a limit can be set and taken away."""
    _ = command(*BOOTSTRAP)
    create = ("queues", "create", "--namespace", "shop", "--name", "mail", "--lease-seconds", "5")
    assert command(*create)["lease_seconds"] == 5
    assert command(*create, code=ExitCode.FAILED)["error"]["kind"] == "VALIDATION_FAILED"
    limit = ("quotas", "set", "--application", "web")
    assert command(*limit, "--max-open-tasks", "7")["max_open_tasks"] == 7
    assert command(*limit, "--no-limit")["max_open_tasks"] is None


@pytest.mark.req("orbit:OPS-04", "orbit:TSK-12")
def test_tasks_recover_takes_back_what_a_vanished_worker_held(orbit_scene: Scene, command: Command) -> None:
    """One lost attempt is recovered, the one in hand is not, and a second run finds nothing."""
    for _ in range(2):
        _ = orbit_scene.submit(policy="safe")
    lost, held = orbit_scene.claim(count=2)
    orbit_scene.age_attempt(lost.attempt_id)
    assert command("tasks", "recover", "--once") == {"recovered": 1}
    assert command("tasks", "recover", "--once") == {"recovered": 0}
    states = dict(orbit_scene.rows("select attempt_id, state from orbit.task_attempts"))
    assert states == {lost.attempt_id: "EXPIRED", held.attempt_id: "RUNNING"}
