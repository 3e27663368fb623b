"""Settings of an installation: one file, variables that win over it, and refusals that never quote a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import conninfo

from oceanway.installation.layout import Database, Kind, process_of
from oceanway.installation.settings import load_settings
from seapost.model.errors import InvalidSetting

FILE = """
[databases]
core = "host=db.example dbname=oceanway_core user=admin password=hunter2"
[work]
batch = 9
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a settings file."""
    path = tmp_path / "oceanway.toml"
    _ = path.write_text(FILE)
    return path


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(file: Path) -> None:
    """Three settings from three places."""
    settings = load_settings(file, {"OCEANWAY_WORK_BATCH": "7", "OCEANWAY_TRUST_OWN_LOGINS": "false"})
    assert settings.work.batch == 7
    assert settings.work.idle_seconds_max == 1.0
    assert not settings.trust.own_logins
    assert settings.dsn(Database.CORE).startswith("host=db.example")
    assert settings.trust.folder == file.parent / ".oceanway"


@pytest.mark.req("SEC-06", "GEN-07")
def test_a_process_logs_in_as_itself_and_without_the_administrators_password(file: Path) -> None:
    """The connection string of a process names its own role and the file of its password."""
    dsn = load_settings(file, {}).process_dsn(process_of(Kind.DISPATCH, "core"))
    parameters = conninfo.conninfo_to_dict(dsn)
    assert parameters["user"] == "oceanway_dispatch_core"
    assert "password" not in parameters
    assert parameters["passfile"] == str(file.parent / ".oceanway" / "pgpass")


def test_no_secret_is_in_a_representation(file: Path) -> None:
    """Neither the settings nor a refusal shows a password."""
    settings = load_settings(file, {})
    assert "hunter2" not in repr(settings)
    with pytest.raises(InvalidSetting) as refused:
        _ = load_settings(file, {"OCEANWAY_WORK_BATCH": "hunter2"})
    assert "hunter2" not in str(refused.value)
    assert str(refused.value).startswith("work.batch: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[database]\n", "database"),
        ("[work]\nbatches = 1\n", "work.batches"),
        ("[work]\nbatch = 0\n", "work.batch"),
        ("work = 1\n", "work"),
        ("nonsense", "cannot be read as TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named_by_its_place(tmp_path: Path, text: str, place: str) -> None:
    """An unknown section, an unknown setting, a value out of range, a section that is none, and no TOML."""
    path = tmp_path / "oceanway.toml"
    _ = path.write_text(text)
    with pytest.raises(InvalidSetting, match=place):
        _ = load_settings(path, {})


def test_a_missing_file_an_unknown_variable_and_a_missing_database_are_mistakes(tmp_path: Path) -> None:
    """A file that was named must be there; a variable must name a setting; a database must be known when it is used."""
    with pytest.raises(InvalidSetting, match="no such settings file"):
        _ = load_settings(tmp_path / "other.toml", {})
    with pytest.raises(InvalidSetting, match="OCEANWAY_WORK_BACH"):
        _ = load_settings(None, {"OCEANWAY_WORK_BACH": "1"})
    with pytest.raises(InvalidSetting, match=r"databases\.billing"):
        _ = load_settings(None, {}).dsn(Database.BILLING)
