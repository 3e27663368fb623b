"""The command line of OceanWay: exit codes that programs can rely on, JSON where it is asked for, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oceanway.cli.commands import timeline
from oceanway.cli.commands.processes import Loop, Owner
from oceanway.cli.exit_codes import MEANINGS, ExitCode
from oceanway.cli.failures import failure_of
from oceanway.cli.main import run
from oceanway.installation.errors import ReleaseIncomplete
from oceanway.installation.layout import SERVED, WORKS
from oceanway.operations import queries
from seapost.cli.exit_codes import ExitCode as KernelExitCode

SECRET = "hunter2"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write settings of databases that nobody reaches."""
    path = tmp_path / "oceanway.toml"
    dsn = f"host=127.0.0.1 port=1 dbname=nowhere user=admin password={SECRET}"
    lines = [f'{name} = "{dsn}"' for name in ("core", "execution", "gateway", "metering", "billing")]
    _ = path.write_text("[databases]\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["serve", "core"], ExitCode.USAGE),
        (["dispatch", "operations"], ExitCode.USAGE),
        (["work", "billing"], ExitCode.USAGE),
        (["timeline", "everything", "x"], ExitCode.USAGE),
        (["sail"], ExitCode.USAGE),
        (["status", "--config", "/nowhere/oceanway.toml"], ExitCode.SETTING),
        (["--version"], ExitCode.DONE),
        (["serve", "--help"], ExitCode.DONE),
    ],
    ids=str,
)
def test_an_exit_code_says_what_is_wrong(arguments: list[str], code: ExitCode) -> None:
    """Who has no port, no database or no loop; what is no command; a settings file that is not there."""
    assert run(arguments) == code


def test_a_database_out_of_reach_has_an_exit_code_and_shows_no_password(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json one document on standard output says what failed."""
    assert run(["status", "--config", str(config), "--json"]) == ExitCode.UNREACHABLE
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["exitCode"] == ExitCode.UNREACHABLE
    assert SECRET not in out + err


@pytest.mark.parametrize("arguments", [["serve", "metering"], ["dispatch", "metering"], ["work", "metering"]])
def test_a_process_without_its_key_does_not_start(config: Path, arguments: list[str]) -> None:
    """Nobody speaks without a key: the mistake is found before the database is asked for anything."""
    assert run([*arguments, "--config", str(config)]) == ExitCode.SETTING


@pytest.mark.req("SET-37")
def test_an_incomplete_release_has_an_exit_code_of_its_own() -> None:
    """Who starts processes can tell it from an outage."""
    assert failure_of(ReleaseIncomplete("lacks run.created@2.0 2.0")).code == ExitCode.RELEASE


def test_every_exit_code_has_a_meaning_and_the_kernels_numbers_keep_theirs() -> None:
    """One table for both programs, where they share a number."""
    assert set(MEANINGS) == set(ExitCode)
    for code in ExitCode:
        assert code.name not in KernelExitCode.__members__ or KernelExitCode[code.name] == code


def test_the_command_line_knows_every_owner_loop_identifier_and_audience() -> None:
    """What can be named is what there is."""
    assert list(timeline.Identifier) == list(queries.IdentifierKind)
    assert list(timeline.Audience) == list(queries.Audience)
    assert [one.value for one in Owner] == list(SERVED)
    assert [one.value for one in Loop] == list(WORKS)
