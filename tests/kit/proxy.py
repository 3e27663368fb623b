"""A network between two processes that a test can hold, slow down and cut, each direction on its own.

`UP` is what the caller sends, `DOWN` what comes back. A held direction swallows nothing: what has arrived waits, and
`is_holding` says that there is something. Works for anything over TCP: HTTP, or PostgreSQL behind a unix socket.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Final, Self

from psycopg import conninfo

BLOCK_BYTES: Final = 65_536
LINGER_NOT: Final = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""Close with a reset, as a peer does that is gone."""

Address = str | tuple[str, int]


class Way(StrEnum):
    """A direction, as the caller sees it."""

    UP = "up"
    DOWN = "down"


@dataclass(slots=True)
class _Gate:
    """One direction of all connections.

    Attributes:
        bytes_left: after so many more bytes the connection is cut; None: never.
        delay_seconds: how late each block is passed on.
    """

    is_open: threading.Event = field(default_factory=threading.Event)
    waiting: int = 0
    bytes_left: int | None = None
    delay_seconds: float = 0.0


class Proxy:
    """Listens on a loopback port and passes everything on to `target`, a port or a unix socket."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._gates = {way: _Gate() for way in Way}
        for gate in self._gates.values():
            gate.is_open.set()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.connections = 0

    @classmethod
    def before_database(cls, dsn: str) -> Self:
        """Before the server that a connection string names."""
        parameters = conninfo.conninfo_to_dict(dsn)
        host, port = str(parameters["host"]), int(str(parameters.get("port", 5432)))
        return cls(f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port))

    def dsn(self, dsn: str) -> str:
        """The same database, through here."""
        return conninfo.make_conninfo(dsn, host="127.0.0.1", port=self.port, sslmode="disable", gssencmode="disable")

    @property
    def url(self) -> str:
        """The receiver behind it, through here."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.release()
        self.cut()

    def hold(self, *ways: Way) -> None:
        """Pass nothing on, without a word to either side; both directions unless named."""
        for way in ways or Way:
            self._gates[way].is_open.clear()

    def release(self) -> None:
        """Pass everything on again, what was held included."""
        for gate in self._gates.values():
            gate.is_open.set()
            gate.delay_seconds = 0.0

    def delay(self, way: Way, seconds: float) -> None:
        """Pass each block of one direction on so much later."""
        self._gates[way].delay_seconds = seconds

    def cut(self) -> None:
        """Reset every connection; new ones are accepted."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _reset(pair)

    def cut_after(self, way: Way, number: int) -> None:
        """Cut the connection that passes this many more bytes in this direction; those that follow are whole."""
        self._gates[way].bytes_left = number

    def is_holding(self, way: Way) -> bool:
        """Whether something has arrived that is not passed on."""
        return self._gates[way].waiting > 0

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            try:
                far = _connect(self._target)
            except OSError:
                near.close()
                continue
            self.connections += 1
            with self._lock:
                self._pairs.append((near, far))
            for way, from_socket, to_socket in ((Way.UP, near, far), (Way.DOWN, far, near)):
                threading.Thread(target=self._pump, args=(way, from_socket, to_socket), daemon=True).start()

    def _pump(self, way: Way, from_socket: socket.socket, to_socket: socket.socket) -> None:
        gate = self._gates[way]
        try:
            while block := from_socket.recv(BLOCK_BYTES):
                self._wait(gate)
                if gate.bytes_left is not None and len(block) >= gate.bytes_left:
                    to_socket.sendall(block[: gate.bytes_left])
                    gate.bytes_left = None
                    _reset((from_socket, to_socket))
                    return
                if gate.bytes_left is not None:
                    gate.bytes_left -= len(block)
                to_socket.sendall(block)
            self._wait(gate)
            to_socket.shutdown(socket.SHUT_WR)
        except OSError:
            _reset((from_socket, to_socket))

    def _wait(self, gate: _Gate) -> None:
        gate.waiting += 1
        try:
            gate.is_open.wait()
            if gate.delay_seconds:
                self._ended.wait(gate.delay_seconds)
        finally:
            gate.waiting -= 1


def _connect(target: Address) -> socket.socket:
    if isinstance(target, tuple):
        return socket.create_connection(target)
    far = socket.socket(socket.AF_UNIX)
    far.connect(target)
    return far


def _reset(pair: tuple[socket.socket, socket.socket]) -> None:
    """Close both ends; the one over TCP without a farewell. `shutdown` wakes whoever reads there."""
    for one in pair:
        with contextlib.suppress(OSError):
            if one.family != socket.AF_UNIX:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            one.shutdown(socket.SHUT_RDWR)
        one.close()
