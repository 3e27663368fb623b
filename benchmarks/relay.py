"""Counts round trips: a relay in front of the server's socket that reads along what the client asks for.

A client waits for the server once for each Sync and each simple Query (frontend protocol 3, sections "Extended
Query" and "Simple Query"), however many statements travel before it. So the count knows nothing of the driver, and
statements that share one Sync in pipeline mode count once, as they should.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from psycopg import conninfo

WAITS: Final = (b"S", b"Q")
CHUNK_BYTES: Final = 1 << 18
PORT: Final = 5432
HEADER_BYTES: Final = 5


class Trips:
    """The frontend messages of one connection, as they pass."""

    def __init__(self) -> None:
        self.count = 0
        self._started = False
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take in what the client sent; the first message has no type and is the start of the session."""
        buffer = self._buffer
        buffer += data
        place = 0
        while True:
            head = 0 if not self._started else 1
            if len(buffer) - place < HEADER_BYTES:
                break
            (length,) = struct.unpack_from("!i", buffer, place + head)
            if len(buffer) - place < length + head:
                break
            if self._started and bytes(buffer[place : place + 1]) in WAITS:
                self.count += 1
            self._started = True
            place += length + head
        del buffer[:place]


class Relay:
    """Listens on a Unix socket of its own and passes everything on to `dsn`, which must be a Unix socket too."""

    def __init__(self, dsn: str) -> None:
        self._parameters = conninfo.conninfo_to_dict(dsn)
        folder, port = self._parameters["host"], self._parameters.get("port", PORT)
        self._target = f"{folder}/.s.PGSQL.{port}"
        self._folder = tempfile.TemporaryDirectory(prefix="seapost-relay-")
        self._connections: list[Trips] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def trips(self) -> int:
        """Round trips so far, over all connections."""
        return sum(connection.count for connection in self._connections)

    @property
    def dsn(self) -> str:
        """Where clients connect."""
        return conninfo.make_conninfo("", **(self._parameters | {"host": self._folder.name, "port": PORT}))

    async def __aenter__(self) -> Self:
        path = Path(self._folder.name) / f".s.PGSQL.{PORT}"
        self._server = await asyncio.start_unix_server(self._serve, path, limit=CHUNK_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            _ = task.cancel()
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend_reader, backend_writer = await asyncio.open_unix_connection(self._target, limit=CHUNK_BYTES)
        trips = Trips()
        self._connections.append(trips)
        answers = asyncio.create_task(_pass_on(backend_reader, writer, None))
        self._tasks.add(answers)
        answers.add_done_callback(self._tasks.discard)
        await _pass_on(reader, backend_writer, trips)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trips: Trips | None) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            if trips is not None:
                trips.feed(data)
            writer.write(data)
            await writer.drain()
    writer.close()
