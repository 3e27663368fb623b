"""A network between two processes that a test can hold, slow down and cut, each direction on its own.

`UP` is what the caller sends, `DOWN` what comes back. A held direction swallows nothing: what has arrived waits, and
`is_holding` says that there is something. Works for anything over TCP: HTTP, or PostgreSQL behind a unix socket.

A held direction is silent, but the kernel still confirms what it receives. `vanish` takes that away as well: the
sockets drop every packet, as a peer does whose machine is gone, so that only time limits and keepalives notice (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Final, Self

from psycopg import conninfo

BLOCK_BYTES: Final = 65_536
LINGER_NOT: Final = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""Close with a reset, as a peer does that is gone."""
ATTACH_FILTER: Final = 26
DETACH_FILTER: Final = 27
_DROP: Final = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
DROP_ALL: Final = struct.pack("HL", 1, ctypes.addressof(_DROP))
"""A socket filter of one instruction that keeps no byte of any packet (`man 7 socket`, SO_ATTACH_FILTER)."""

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
    """Listens on a loopback port and passes everything on to `target`, a port or a unix socket.

    Attributes:
        connections, refused: how many callers were connected, and how many were turned away.
        is_refusing: set it to turn away whoever calls, as where nobody listens.
    """

    def __init__(self, target: Address) -> None:
        self._target = target
        self._gates = _open_gates()
        self._forgotten: list[_Gate] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.connections = 0
        self.refused = 0
        self.is_refusing = False

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
        for gate in self._forgotten:
            gate.is_open.set()
        self.cut()

    def hold(self, *ways: Way) -> None:
        """Pass nothing on, without a word to either side; both directions unless named."""
        for way in ways or Way:
            self._gates[way].is_open.clear()

    def vanish(self) -> None:
        """Hold everything and drop every packet of the callers unconfirmed, those that would connect included."""
        self.hold()
        with self._lock:
            for one in (self._listening, *(near for near, _ in self._pairs)):
                with contextlib.suppress(OSError):  # closed meanwhile
                    one.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, DROP_ALL)

    def heal(self) -> None:
        """End `vanish`: what the callers have kept and sent again arrives."""
        with self._lock:
            for one in (self._listening, *(near for near, _ in self._pairs)):
                with contextlib.suppress(OSError):  # closed meanwhile
                    one.setsockopt(socket.SOL_SOCKET, DETACH_FILTER, 0)
        self.release()

    def forget(self) -> None:
        """End `vanish` for new connections; the old ones are never answered again."""
        with self._lock:
            self._listening.setsockopt(socket.SOL_SOCKET, DETACH_FILTER, 0)
            self._forgotten.extend(self._gates.values())
            self._gates = _open_gates()

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

    def is_armed(self, way: Way) -> bool:
        """Whether a cut that was ordered is still to come."""
        return self._gates[way].bytes_left is not None

    def disarm(self) -> None:
        """Take back cuts that have not come."""
        for gate in self._gates.values():
            gate.bytes_left = None

    def is_holding(self, way: Way) -> bool:
        """Whether something has arrived that is not passed on."""
        return self._gates[way].waiting > 0

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = None if self.is_refusing else _connect(self._target)
            if far is None:
                self.refused += 1
                near.close()
                continue
            self.connections += 1
            with self._lock:
                self._pairs.append((near, far))
                gates = self._gates
            for gate, from_socket, to_socket in ((gates[Way.UP], near, far), (gates[Way.DOWN], far, near)):
                threading.Thread(target=self._pump, args=(gate, from_socket, to_socket), daemon=True).start()

    def _pump(self, gate: _Gate, from_socket: socket.socket, to_socket: socket.socket) -> None:
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


def _open_gates() -> dict[Way, _Gate]:
    gates = {way: _Gate() for way in Way}
    for gate in gates.values():
        gate.is_open.set()
    return gates


def _connect(target: Address) -> socket.socket | None:
    """The other side; None when nobody listens there."""
    try:
        if isinstance(target, tuple):
            return socket.create_connection(target)
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(target)
        except OSError:
            far.close()
            raise
    except OSError:
        return None
    return far


def _reset(pair: tuple[socket.socket, socket.socket]) -> None:
    """Close both ends; the one over TCP without a farewell. `shutdown` wakes whoever reads there."""
    for one in pair:
        with contextlib.suppress(OSError):
            if one.family != socket.AF_UNIX:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            one.shutdown(socket.SHUT_RDWR)
        one.close()
