"""The event connection: pull, acknowledge, ping, by hand. `orbit.sdk.consumer` does it for you.

Both classes do the same; the synchronous one may be used by several threads at once. Closing changes no delivery:
leases run on, and their proofs stay usable over another connection (WSS-13, LSE-30). Nothing is acknowledged by
itself, neither by leaving the context manager nor by being forgotten (F58).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, cast

from websockets.asyncio.client import ClientConnection as AsyncSocket
from websockets.exceptions import ConnectionClosed as SocketClosed
from websockets.sync.client import ClientConnection as Socket

from orbit.model.limits import CAPACITY_MAX, PULL_MAX, PULL_WAIT_MS_MAX
from orbit.sdk.addresses import Access
from orbit.sdk.calls import Calls, Future
from orbit.sdk.dialing import BROKEN, broken, closing, dial, dial_async
from orbit.sdk.errors import Unreachable
from orbit.sdk.frames import BadFrame
from orbit.sdk.values import AckResult, Proof, ReceivedEvent
from orbit.wire.frames import HelloOk

WAIT_SECONDS_MAX: Final = PULL_WAIT_MS_MAX / 1000

Request = Callable[[Calls], tuple[str | None, Future]]
"""Makes a frame and the future of its answer."""


def checked_capacity(capacity: int) -> int:
    """A capacity that the server takes; ValueError otherwise."""
    if not 1 <= capacity <= CAPACITY_MAX:
        raise ValueError(f"capacity must be 1 to {CAPACITY_MAX}")
    return capacity


def _checked_pull(most: int, wait: float) -> None:
    if not 1 <= most <= PULL_MAX:
        raise ValueError(f"max must be 1 to {PULL_MAX}")
    if not 0 <= wait <= WAIT_SECONDS_MAX:
        raise ValueError(f"wait must be 0 to {WAIT_SECONDS_MAX:g} seconds")


def _proof(event: ReceivedEvent | Proof) -> Proof:
    return event if isinstance(event, Proof) else event.proof


def _no_answer(seconds: float) -> Unreachable:
    return Unreachable(f"the server did not answer within {seconds:g} s; what it did is not known")


class AsyncEventConnection:
    """One event connection of one subscription.

    Attributes:
        connection_id: what the server calls the connection.
    """

    connection_id: str

    def __init__(self, socket: AsyncSocket, *, timeout: float) -> None:
        """Use `connect`; this is for it alone."""
        self._socket = socket
        self._timeout = timeout
        self._calls = Calls(asyncio.get_running_loop().create_future)
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls,
        base_url: str,
        token: str,
        subscription_id: str,
        *,
        capacity: int,
        timeout: float = 10.0,  # noqa: ASYNC109 - part of the interface
    ) -> AsyncEventConnection:
        """Open a connection, `timeout` seconds for the handshake and for each answer.

        Raises OrbitApiError of the refused handshake, ConnectionClosed where the server refuses the subscription,
        Unreachable where no answer comes.
        """
        access = Access.of(base_url, token)
        checked_capacity(capacity)
        connection = cls(await dial_async(access, timeout), timeout=timeout)
        try:
            answer: HelloOk = await connection._ask(*connection._calls.hello(subscription_id, capacity))
        except BaseException:
            await connection.close()
            raise
        connection.connection_id = answer.connection_id
        return connection

    async def pull(self, max: int, *, wait: float = 0.0) -> list[ReceivedEvent]:  # noqa: A002 - part of the interface
        """At most `max` deliveries, waiting up to `wait` seconds for the first; they are leased for 30 s.

        Raises HistoryExpired where the position lies before what is retained.
        """
        _checked_pull(max, wait)
        return await self._ask(*self._calls.pull(max, wait), patience=wait)

    async def ack(self, event: ReceivedEvent | Proof) -> AckResult:
        """Say that the event is stored durably. Raises DeliveryLeaseLost where a newer delivery replaced the proof."""
        return await self._ask(*self._calls.ack(_proof(event)))

    async def ping(self) -> None:
        """Have the server answer once."""
        await self._ask(*self._calls.ping())

    async def close(self) -> None:
        """Close with 1000; repeatable."""
        await self._socket.close()
        await asyncio.wait({self._reader})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, text: str | None, future: Future, *, patience: float = 0.0) -> Any:  # noqa: ANN401
        answer = cast("asyncio.Future[Any]", future)
        seconds = self._timeout + patience
        try:
            async with asyncio.timeout(seconds):
                if text is not None:
                    await self._socket.send(text)
                return await answer
        except TimeoutError:
            raise _no_answer(seconds) from None
        except SocketClosed as error:
            answer.cancel()
            raise closing(error, self._calls.problem) from error

    async def _read(self) -> None:
        try:
            while self._calls.problem is None:
                self._calls.received(await self._socket.recv())
            await self._socket.close()
            await self._socket.recv()
        except SocketClosed as error:
            self._calls.ended(closing(error, self._calls.problem))
        except BadFrame as error:
            self._calls.ended(broken(error))
            await self._socket.close(BROKEN)


class EventConnection:
    """One event connection of one subscription; as `AsyncEventConnection`.

    Attributes:
        connection_id: what the server calls the connection.
    """

    connection_id: str

    def __init__(self, socket: Socket, *, timeout: float) -> None:
        """Use `connect`; this is for it alone."""
        self._socket = socket
        self._timeout = timeout
        self._calls = Calls(concurrent.futures.Future)
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="orbit-event-connection", daemon=True)
        self._reader.start()

    @classmethod
    def connect(
        cls, base_url: str, token: str, subscription_id: str, *, capacity: int, timeout: float = 10.0
    ) -> EventConnection:
        """As `AsyncEventConnection.connect`."""
        access = Access.of(base_url, token)
        checked_capacity(capacity)
        connection = cls(dial(access, timeout), timeout=timeout)
        try:
            answer: HelloOk = connection._ask(lambda calls: calls.hello(subscription_id, capacity))
        except BaseException:
            connection.close()
            raise
        connection.connection_id = answer.connection_id
        return connection

    def pull(self, max: int, *, wait: float = 0.0) -> list[ReceivedEvent]:  # noqa: A002 - part of the interface
        """As `AsyncEventConnection.pull`."""
        _checked_pull(max, wait)
        return self._ask(lambda calls: calls.pull(max, wait), patience=wait)

    def ack(self, event: ReceivedEvent | Proof) -> AckResult:
        """As `AsyncEventConnection.ack`."""
        return self._ask(lambda calls: calls.ack(_proof(event)))

    def ping(self) -> None:
        """Have the server answer once."""
        self._ask(Calls.ping)

    def close(self) -> None:
        """Close with 1000; repeatable."""
        self._socket.close()
        self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: Request, *, patience: float = 0.0) -> Any:  # noqa: ANN401
        seconds = self._timeout + patience
        with self._lock:
            text, future = request(self._calls)
        answer = cast("concurrent.futures.Future[Any]", future)
        try:
            if text is not None:
                self._socket.send(text)
            return answer.result(seconds)
        except TimeoutError:
            raise _no_answer(seconds) from None
        except SocketClosed as error:
            raise closing(error, self._calls.problem) from error
        finally:
            answer.cancel()

    def _read(self) -> None:
        try:
            while self._calls.problem is None:
                text = self._socket.recv()
                with self._lock:
                    self._calls.received(text)
            self._socket.close()
            self._socket.recv()
        except SocketClosed as error:
            with self._lock:
                self._calls.ended(closing(error, self._calls.problem))
        except BadFrame as error:
            with self._lock:
                self._calls.ended(broken(error))
            self._socket.close(BROKEN)
