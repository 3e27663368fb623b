"""One event connection from `hello` to its close code (section 16).

States and authority: the database decides everything about deliveries, each transaction checks the credential again
(AUT-12); a session only carries words. It is

1. *greeting*: accepted, waits for `hello`;
2. *serving*: reads frames, with at most one task for a pull and one for ACKs, and no more than one transaction at a
   time. A connection that does neither is checked for its rights every `check` seconds;
3. *ending*: nothing new is begun; running transactions finish and ACKs that were received are settled and answered;
   then comes the last frame and the close code.

The first reason to end counts: the client left, a broken frame, a lost right, a stop of the server, a defect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import assert_never

from orbit.access.token import TokenDigest
from orbit.journal.wake import WakeHub
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.ws import writing
from orbit.server.ws.channel import Channel, Gone, Heard
from orbit.server.ws.connection import Connection, SessionLimits, noted_defect
from orbit.server.ws.ending import BINARY_FRAME, LEFT, NO_HELLO, Ended, Ending, ending_of
from orbit.server.ws.pulling import Puller
from orbit.server.ws.reading import FrameRefused, read_frame
from orbit.server.ws.settling import Settler
from orbit.subscriptions.bounds import Bounds
from orbit.subscriptions.deliveries import Deliveries
from orbit.subscriptions.service import Subscriptions
from orbit.wire.frames import Hello, Ping, Pull


class Session:
    """Serves one connection."""

    def __init__(
        self,
        channel: Channel,
        token: TokenDigest,
        *,
        connection_id: str,
        subscriptions: Subscriptions,
        deliveries: Deliveries,
        wakes: WakeHub,
        bounds: Bounds,
        limits: SessionLimits,
    ) -> None:
        self._channel = channel
        self._token = token
        self._connection_id = connection_id
        self._subscriptions = subscriptions
        self._deliveries = deliveries
        self._wakes = wakes
        self._bounds = bounds
        self._limits = limits

    async def run(self) -> None:
        """Serve until the connection has ended; raises nothing but a cancellation."""
        try:
            await self._channel.accept()
            ending = await self._greet()
        except Gone:
            return
        except Ended as ended:
            ending = ended.ending
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection ends in order
            ending = noted_defect(error, self._connection_id)
        await self._take_leave(ending)

    async def _greet(self) -> Ending:
        hello = await self._hello()
        try:
            seen = await self._subscriptions.hello(self._token, subscription_id=hello.subscription_id)
        except OrbitError as error:
            raise Ended(ending_of(error, hello.request_id)) from None
        with self._wakes.listen(seen.queue_id, seen.subscription_id) as listener:
            connection = Connection(
                self._channel,
                self._token,
                connection_id=self._connection_id,
                subscription_id=seen.subscription_id,
                capacity=hello.capacity,
                listener=listener,
            )
            answer = writing.hello_ok(
                hello.request_id,
                connection_id=self._connection_id,
                subscription_id=seen.subscription_id,
                status=seen.status,
                revision=seen.revision,
                queue_id=seen.queue_id,
                types=seen.types,
                capacity=hello.capacity,
                server_time=seen.server_time,
            )
            await self._channel.send([answer])
            return await self._serve(connection)

    async def _hello(self) -> Hello:
        try:
            async with asyncio.timeout(self._limits.hello):
                heard = await self._channel.receive()
        except TimeoutError:
            raise Ended(Ending(NO_HELLO, "no hello")) from None
        if isinstance(heard, Heard):
            raise Ended(_ending_of_heard(heard))
        try:
            frame = read_frame(heard)
        except FrameRefused as refused:
            raise Ended(ending_of(refused.error, refused.request_id)) from None
        if not isinstance(frame, Hello):
            request_id = frame[0] if isinstance(frame, tuple) else frame.request_id
            raise Ended(ending_of(_wrong_order("the first frame must be hello"), request_id))
        return frame

    async def _serve(self, connection: Connection) -> Ending:
        with self._bounds.connection(connection.subscription_id, connection.connection_id) as bounds:
            settler = Settler(connection, self._deliveries, bounds)
            puller = Puller(connection, self._deliveries, bounds, settler, repeat_seconds=self._limits.repeat)
            reader = asyncio.create_task(connection.guard(self._read(connection, puller, settler)))
            watch = asyncio.create_task(connection.guard(self._watch(connection)))
            try:
                ending = await connection.ended()
                reader.cancel()
                watch.cancel()
                running = [task for task in (settler.task, puller.task) if task is not None and not task.done()]
                if running:
                    await asyncio.wait(running, timeout=self._limits.stop)
                return ending
            finally:
                await _stop(task for task in (reader, watch, settler.task, puller.task) if task is not None)

    async def _read(self, connection: Connection, puller: Puller, settler: Settler) -> None:
        while True:
            heard = await self._channel.receive()
            if isinstance(heard, Heard):
                raise Ended(_ending_of_heard(heard))
            try:
                frame = read_frame(heard)
            except FrameRefused as refused:
                raise Ended(ending_of(refused.error, refused.request_id)) from None
            match frame:
                case tuple():
                    await settler.add(frame)
                case Pull():
                    await puller.start(frame)
                case Ping():
                    await connection.channel.send([writing.pong(frame.request_id, datetime.now(UTC))])
                case Hello():
                    raise Ended(ending_of(_wrong_order("hello was said already"), frame.request_id))
                case _:
                    assert_never(frame)

    async def _watch(self, connection: Connection) -> None:
        """Check the rights of a connection that has not used the database for a while."""
        while True:
            await asyncio.sleep(connection.checked_at + self._limits.check - connection.loop.time())
            if connection.loop.time() < connection.checked_at + self._limits.check:
                continue
            try:
                async with connection.turn:
                    await self._subscriptions.hello(self._token, subscription_id=connection.subscription_id)
            except OrbitError as error:
                if error.code not in {ErrorCode.SERVICE_BUSY, ErrorCode.SERVICE_NOT_READY}:
                    raise
            connection.confirmed()  # or the next try, when the database could not say

    async def _take_leave(self, ending: Ending) -> None:
        if ending.code is None:
            return
        try:
            if ending.frame is not None:
                await self._channel.send([ending.frame])
        except Gone:
            return
        await self._channel.close(ending.code, ending.reason)


def _ending_of_heard(heard: Heard) -> Ending:
    match heard.what:
        case "left":
            return LEFT
        case "binary":
            return Ending(BINARY_FRAME, "binary frame")
        case "stop":
            return ending_of(OrbitError(ErrorCode.SERVER_SHUTTING_DOWN), None)
        case _:
            assert_never(heard.what)


def _wrong_order(detail: str) -> OrbitError:
    return OrbitError(ErrorCode.INVALID_MESSAGE, detail)


async def _stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel what still runs and wait for it; `guard` has dealt with every failure."""
    remaining = [task for task in tasks if not task.done()]
    for task in remaining:
        task.cancel()
    if remaining:
        await asyncio.wait(remaining)
