"""The program itself: usage, exit codes, closed pipes, full disks, and secrets that are not shown (F85)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from orbit.cli import main
from orbit.cli.exit_codes import MEANINGS, ExitCode
from orbit.cli.failures import failure_of
from orbit.cli.main import app
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from tests.kit.commands import ORBIT, environment

NOWHERE = "postgresql://app:tr0ub4dor@127.0.0.1:1/orbit"

Parsed = Any
"""Commands as typer's parser, whose classes are private, holds them."""


def _commands(group: Parsed, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Parsed]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(_commands(get_command(app)))


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder without any setting."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORBIT_DATABASE_URL", raising=False)


@pytest.mark.req("F85", "orbit:OPS-01", "orbit:OPS-02", "orbit:OPS-03", "orbit:OPS-04", "orbit:OPS-06", "orbit:OPS-07")
def test_orbit_has_every_command_of_the_specification() -> None:
    """What section 19 names can be called."""
    assert {
        "bootstrap",
        "migrate up",
        "migrate status",
        "migrate verify",
        "migrate resolve",
        "serve",
        "tasks recover",
        "credentials issue",
        "credentials rotate",
        "credentials revoke",
        "queues create",
        "quotas set",
        "events status",
    } <= COMMANDS.keys()


@pytest.mark.req("F85")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_orbit_speaks_json_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has `--json` and a help text for itself and all it takes, and help ends with 0."""
    command = COMMANDS[name]
    assert "--json" in {text for parameter in command.params for text in parameter.opts}
    assert command.help
    assert all(parameter.help for parameter in command.params if parameter.name != "help")
    assert main.run([*name.split(), "--help"]) is ExitCode.DONE
    assert "--json" in capsys.readouterr().out


@pytest.mark.req("F85")
@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["migrate", "sideways"],
        ["bootstrap", "--namespace", "n"],
        ["serve", "--port", "many"],
        ["serve", "--commit", "never"],
        ["credentials", "rotate"],
        ["credentials", "issue", "--application", "a", "--name", "c", "--action", "tasks:read"],
        ["migrate", "resolve", "--version", "1", "--state", "perhaps", "--reason", "r"],
        ["quotas", "set", "--application", "a"],
        ["quotas", "set", "--application", "a", "--no-limit", "--max-open-tasks", "3"],
        ["events", "verify"],
    ],
)
def test_a_command_line_of_orbit_that_cannot_be_read_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors have the code 2, one line on standard error, and nothing on standard output."""
    assert main.run(arguments) is ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("orbit: ")


@pytest.mark.req("F85", "orbit:T-P09")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["events", "status"], ExitCode.SETTING),
        (["serve"], ExitCode.SETTING),
        (["migrate", "up", "--dsn", "nonsense://tr0ub4dor"], ExitCode.SETTING),
        (["migrate", "up", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
        (["migrate", "status", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
        (["events", "status", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
        (["tasks", "recover", "--once", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
        (["events", "verify", "absent.jsonl"], ExitCode.FAILED),
    ],
)
def test_a_failure_of_orbit_has_its_code_and_one_line_in_both_forms(
    arguments: list[str], code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that failed says 0; standard output is empty, or with --json exactly one document; no secret shows."""
    assert main.run(arguments) is code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert main.run([*arguments, "--json"]) is code
    both = capsys.readouterr()
    assert json.loads(both.out)["error"]["exitCode"] == code
    for text in (captured.err, both.err, both.out):
        assert "Traceback" not in text
        assert "tr0ub4dor" not in text


def test_a_refusal_of_the_service_is_told_by_its_code() -> None:
    """The code of section 20 opens the line, and decides how the command ends."""
    missing = failure_of(OrbitError(ErrorCode.QUEUE_NOT_FOUND, "a named queue does not exist"))
    assert (missing.code, missing.message) == (ExitCode.NOT_FOUND, "QUEUE_NOT_FOUND: a named queue does not exist")
    assert failure_of(OrbitError(ErrorCode.SERVICE_BUSY)).code is ExitCode.UNREACHABLE
    assert failure_of(OrbitError(ErrorCode.VALIDATION_FAILED)).code is ExitCode.FAILED
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.req("F85")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_orbit_does_not_mind_a_closed_pipe(arguments: list[str], tmp_path: Path) -> None:
    """Whoever has read enough may close the pipe: nothing is said and the code is 0."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [ORBIT, *arguments], cwd=tmp_path, env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
