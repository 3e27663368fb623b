"""The program itself: usage, exit codes, closed pipes, full disks, and the commands that must not exist."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from seapost.cli import main
from seapost.cli.exit_codes import ExitCode
from seapost.cli.main import app
from tests.kit.commands import PROGRAM, environment, seapost

NOWHERE = "postgresql://app:tr0ub4dor@127.0.0.1:1/orders"


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
    for name in list(os.environ):
        if name.startswith("SEAPOST_"):
            monkeypatch.delenv(name)


@pytest.mark.req("F85")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has `--json` and a help text, and help ends with 0."""
    command = COMMANDS[name]
    options = {text for parameter in command.params for text in parameter.opts}
    assert "--json" in options
    assert command.help
    assert all(parameter.help for parameter in command.params if parameter.name != "help")
    assert main.run([*name.split(), "--help"]) is ExitCode.DONE
    assert "--json" in capsys.readouterr().out


@pytest.mark.req("NEG-37", "RTY-06", "SEC-18")
def test_no_command_skips_forces_edits_or_replays() -> None:
    """There is no command and no option that would move a delivery by an operator's word."""
    forbidden = ("skip", "force", "edit", "modify", "replay", "resend", "requeue", "release", "purge", "delete", "drop")
    words = {
        word
        for name, command in COMMANDS.items()
        for text in (name, *(option for parameter in command.params for option in parameter.opts))
        for word in text.strip("-").replace("-", " ").split()
    } - {"release"}
    assert "quarantine acknowledge" in COMMANDS
    assert {name for name in COMMANDS if name.startswith(("quarantine", "delivery", "event"))} == {
        "quarantine list",
        "quarantine show",
        "quarantine acknowledge",
        "delivery show",
        "event show",
    }
    assert words.isdisjoint(forbidden)


@pytest.mark.req("F85")
@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["status", "--nonsense"],
        ["event", "show"],
        ["event", "show", "no-uuid"],
        ["status", "--every", "soon"],
        ["migrate", "--guards", "loose"],
        ["quarantine", "acknowledge", "no-delivery"],
        ["quarantine", "list", "--before", "yesterday"],
        ["contracts", "export"],
    ],
)
def test_a_command_line_that_cannot_be_read_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors have the code 2, one line on standard error, and nothing on standard output."""
    assert main.run(arguments) is ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("seapost: ")


@pytest.mark.req("F85")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status"], ExitCode.SETTING),
        (["status", "--config", "absent.toml"], ExitCode.SETTING),
        (["dispatch", "--dsn", NOWHERE], ExitCode.SETTING),
        (["dispatch", "--dsn", NOWHERE, "--destination", "billing"], ExitCode.SETTING),
        (["serve", "nowhere:inbox"], ExitCode.SETTING),
        (["routes", "plan", "nowhere:application"], ExitCode.SETTING),
        (["receipt", "verify", "absent.json"], ExitCode.FAILED),
        (["migrate", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
        (["status", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
        (["event", "show", "0190a6a0-0000-7000-8000-000000000000", "--dsn", NOWHERE], ExitCode.UNREACHABLE),
    ],
)
def test_a_failure_has_its_code_and_one_line_in_both_forms(
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


def test_an_unexpected_error_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake of ours is told with its kind; its place is shown only to who asks."""

    def broken(**_: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("seapost.cli.commands.status.load_settings", broken)
    assert main.run(["status"]) is ExitCode.FAILED
    assert capsys.readouterr().err.startswith("seapost: Unexpected ZeroDivisionError: by zero")
    monkeypatch.setenv("SEAPOST_DEBUG", "1")
    assert main.run(["status"]) is ExitCode.FAILED
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.req("F85")
@pytest.mark.parametrize("arguments", [["contracts", "verify", "--json"], ["--help"], ["--version"]])
def test_a_closed_pipe_is_no_failure(arguments: list[str], tmp_path: Path) -> None:
    """Whoever has read enough may close the pipe: nothing is said and the code is 0."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [PROGRAM, *arguments], cwd=tmp_path, env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.req("F85")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_result_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    """A full disk under standard output is told and has a code of its own."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "contracts", "verify"],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == ExitCode.OUTPUT_LOST
    assert b"could not be written" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.req("F85")
def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    """Ctrl-C ends a command with 130 and one line."""
    (tmp_path / "pausing.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", encoding="utf-8")
    done = seapost("routes", "plan", "pausing:application", folder=tmp_path)
    assert done.code == 128 + signal.SIGINT
    assert done.stderr == "seapost: interrupted\n"


@pytest.mark.req("MET-05")
def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` tells the release that metrics carry as well."""
    assert main.run(["--version"]) is ExitCode.DONE
    assert capsys.readouterr().out.startswith("seapost ")
