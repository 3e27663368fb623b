"""The automatic consumer: pulls, runs handlers, acknowledges what a handler has returned from, and reconnects.

It acknowledges only after the handler has returned without an exception (SDK-09), so the handler commits its own
inbox first. Delivery is at least once: the same event may come again, and the handler decides by its inbox (SDK-10).
All decisions are made in `consuming.py`; here are the two ways to wait for sockets and to run handlers.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from websockets.asyncio.client import ClientConnection as AsyncSocket
from websockets.exceptions import ConnectionClosed as SocketClosed
from websockets.sync.client import ClientConnection as Socket

from orbit.sdk.addresses import Access
from orbit.sdk.connection import WAIT_SECONDS_MAX, checked_capacity
from orbit.sdk.consuming import GRACE_SECONDS, Consumption, ErrorReport
from orbit.sdk.dialing import broken, closing, dial, dial_async, ended_by
from orbit.sdk.errors import OrbitSdkError
from orbit.sdk.frames import BadFrame
from orbit.sdk.values import ConsumerStats, ReceivedEvent
from orbit.sdk.waiting import Backoff

OPEN_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 1.0
"""How often the asynchronous consumer looks whether its connection still answers."""
TICK_SECONDS: Final = 0.1
"""How often the synchronous consumer looks up from its socket."""


class _Consumer:
    """What both consumers have: their arguments, their state, their figures."""

    def __init__(
        self,
        base_url: str,
        token: str,
        subscription_id: str,
        *,
        capacity: int,
        wait: float,
        on_error: ErrorReport | None,
    ) -> None:
        if not 0 < wait <= WAIT_SECONDS_MAX:
            raise ValueError(f"wait must be more than 0 and at most {WAIT_SECONDS_MAX:g} seconds")
        self._access = Access.of(base_url, token)
        self._capacity = checked_capacity(capacity)
        self._core = Consumption(subscription_id, capacity=capacity, wait=wait, on_error=on_error, backoff=Backoff())
        self._has_run = False

    @property
    def stats(self) -> ConsumerStats:
        """Whether it is connected and when something came last: tells an idle consumer from a broken one (SDK-18)."""
        return self._core.stats

    def _begin(self) -> None:
        if self._has_run:
            raise RuntimeError("a consumer runs once; make another one")
        self._has_run = True


class AsyncEventConsumer(_Consumer):
    """Runs the coroutine `handler` for every event, at most `capacity` at once.

    Args:
        handler: stores the event durably and returns; an exception leaves the event unacknowledged.
        capacity: 1 to 32 handlers at once.
        wait: how long a pull stays open on the server, seconds, up to 30.
        on_error: told of every failed handler, with its event, and of every lost connection, with None; else the
            logger `orbit.sdk.consumer` is.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        subscription_id: str,
        handler: Callable[[ReceivedEvent], Awaitable[None]],
        *,
        capacity: int = 8,
        wait: float = 20.0,
        on_error: ErrorReport | None = None,
    ) -> None:
        super().__init__(base_url, token, subscription_id, capacity=capacity, wait=wait, on_error=on_error)
        self._handler = handler
        self._events: asyncio.Queue[ReceivedEvent] = asyncio.Queue()
        self._places = asyncio.Event()
        self._nudge = asyncio.Event()
        self._ended = asyncio.Event()
        self._socket: AsyncSocket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Consume until `stop()` or a terminal error, which is raised: a refused token, subscription or protocol.

        HistoryExpired is raised after the running handlers and their ACKs are done; nothing is skipped by itself.
        """
        self._begin()
        for _ in range(self._capacity):
            self._spawn(self._work())
        serving = asyncio.create_task(self._serve())
        try:
            await self._watch(serving)
            await self._end(serving)
        except OrbitSdkError:
            self._core.stop(GRACE_SECONDS)
            await self._let_handlers_end()
            raise
        finally:
            serving.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.wait({serving, *self._tasks})
            self._core.ended()
            self._ended.set()
        self._core.raise_end()

    async def stop(self, *, grace: float = GRACE_SECONDS) -> None:
        """Pull no more, let running handlers end within `grace` seconds, send their ACKs, close with 1000.

        Returns when `run` is about to; called by a handler it only gives the order.
        """
        self._core.stop(grace)
        self._nudge.set()
        if self._has_run and asyncio.current_task() not in self._tasks:
            await self._ended.wait()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.create_task(coroutine))

    async def _watch(self, serving: asyncio.Task[None]) -> None:
        """Wait until nothing is left to be done, and give up a connection that has stopped answering."""
        was_silent = False
        while not serving.done() and not self._core.finished_draining:
            nudged = asyncio.create_task(self._nudge.wait())
            until = self._core.deadline
            seconds = LOOK_SECONDS if until is None else min(LOOK_SECONDS, max(0.0, until - time.monotonic()))
            await asyncio.wait({serving, nudged}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            nudged.cancel()
            self._nudge.clear()
            silent = self._socket is not None and self._core.silent is not None
            if silent and was_silent and self._socket is not None:  # twice, as a handler may have kept the loop busy
                self._socket.transport.abort()
            was_silent = silent

    async def _end(self, serving: asyncio.Task[None]) -> None:
        """Close with 1000, and raise what the connection ended with."""
        if self._socket is not None:
            await self._socket.close()
        if not serving.done():
            serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    async def _let_handlers_end(self) -> None:
        while self._core.is_running and not self._core.overdue:
            self._nudge.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), LOOK_SECONDS)

    async def _serve(self) -> None:
        """Connect, converse, and connect again."""
        while not self._core.finished_draining:
            try:
                await self._converse(await dial_async(self._access, OPEN_SECONDS))
            except OrbitSdkError as error:
                await asyncio.sleep(self._core.lost(error))

    async def _converse(self, socket: AsyncSocket) -> None:
        """Serve one connection until it ends, which is always an error."""
        puller = asyncio.create_task(self._keep_pulling(socket))
        self._socket = socket
        try:
            await socket.send(self._core.hello())
            while self._core.problem is None:
                event, replies = self._core.received(await socket.recv())
                if event is not None:
                    self._events.put_nowait(event)
                    continue
                for reply in replies:
                    await socket.send(reply)
                self._places.set()
                if self._core.draining:
                    self._nudge.set()
            raise ended_by(self._core.problem)
        except SocketClosed as error:
            raise closing(error, self._core.problem) from error
        except BadFrame as error:
            raise broken(error) from error
        finally:
            self._socket = None
            puller.cancel()
            await asyncio.wait({puller})
            await socket.close()

    async def _keep_pulling(self, socket: AsyncSocket) -> None:
        """Pull as soon as there are places; those that come free in one go are filled by one pull."""
        with contextlib.suppress(SocketClosed):
            while True:
                await self._places.wait()
                self._places.clear()
                pull = self._core.pull()
                if pull is not None:
                    await socket.send(pull)

    async def _work(self) -> None:
        """Run one handler after another."""
        while True:
            event = await self._events.get()
            try:
                await self._handler(event)
            except asyncio.CancelledError as error:
                self._core.failed(event)
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self._core.report(event, RuntimeError(f"the handler was cancelled: {error}"))
            except Exception as error:  # noqa: BLE001 - the user's code
                self._core.failed(event)
                self._core.report(event, error)
            else:
                await self._acknowledge(event)
            self._places.set()
            if self._core.draining:
                self._nudge.set()

    async def _acknowledge(self, event: ReceivedEvent) -> None:
        ack = self._core.finished(event)
        if self._socket is not None and self._core.is_connected:
            with contextlib.suppress(SocketClosed):  # it is sent again on the next connection
                await self._socket.send(ack)


class EventConsumer(_Consumer):
    """Runs the function `handler` for every event, in a pool of `capacity` threads; as `AsyncEventConsumer`.

    `run` blocks. The threads are daemons: a handler that is still busy when the process ends is cut off like by a
    crash, and its event is delivered again.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        subscription_id: str,
        handler: Callable[[ReceivedEvent], None],
        *,
        capacity: int = 8,
        wait: float = 20.0,
        on_error: ErrorReport | None = None,
    ) -> None:
        super().__init__(base_url, token, subscription_id, capacity=capacity, wait=wait, on_error=on_error)
        self._handler = handler
        self._events: queue.SimpleQueue[ReceivedEvent | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._socket: Socket | None = None
        self._threads: list[threading.Thread] = []
        self._inside: set[int] = set()
        self._exit: BaseException | None = None

    def run(self) -> None:
        """As `AsyncEventConsumer.run`; blocks."""
        self._begin()
        self._inside.add(threading.get_ident())
        for number in range(self._capacity):
            thread = threading.Thread(target=self._work, name=f"orbit-handler-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        try:
            self._serve()
        except OrbitSdkError:
            self._core.stop(GRACE_SECONDS)
            self._let_handlers_end()
            raise
        finally:
            for _ in self._threads:
                self._events.put(None)
            self._core.ended()
            self._ended.set()
        if self._exit is not None:
            raise self._exit
        self._core.raise_end()

    def stop(self, *, grace: float = GRACE_SECONDS) -> None:
        """As `AsyncEventConsumer.stop`; called by a handler, or by a signal handler, it only gives the order."""
        self._core.stop(grace)
        if self._has_run and threading.get_ident() not in self._inside:
            self._ended.wait()

    def _failed(self, event: ReceivedEvent, error: BaseException) -> None:
        """Report what a handler raised; what asks the process to end (SystemExit) ends `run` with it."""
        if isinstance(error, Exception):
            self._core.report(event, error)
        else:
            self._exit = error
            self._core.stop(0)

    def _let_handlers_end(self) -> None:
        while self._core.is_running and not self._core.overdue:
            time.sleep(TICK_SECONDS)

    def _serve(self) -> None:
        """Connect, converse, and connect again."""
        while not self._core.finished_draining:
            try:
                self._converse(dial(self._access, OPEN_SECONDS))
            except OrbitSdkError as error:
                with self._lock:
                    until = time.monotonic() + self._core.lost(error)
                while (left := until - time.monotonic()) > 0 and not self._core.finished_draining:
                    time.sleep(min(left, TICK_SECONDS))

    def _converse(self, socket: Socket) -> None:
        """Serve one connection until it ends or nothing is left to be done."""
        self._socket = socket
        try:
            with self._lock:
                hello = self._core.hello()
            socket.send(hello)
            while self._core.problem is None:
                if self._core.finished_draining:
                    return
                self._take_frame(socket)
            raise ended_by(self._core.problem)
        except SocketClosed as error:
            raise closing(error, self._core.problem) from error
        except BadFrame as error:
            raise broken(error) from error
        finally:
            self._socket = None
            socket.close()

    def _take_frame(self, socket: Socket) -> None:
        try:
            text = socket.recv(TICK_SECONDS)
        except TimeoutError:
            if (silent := self._core.silent) is not None:
                raise silent from None
            self._pull(socket)  # the last one may not have been sent because a handler had yet to take its event
            return
        with self._lock:
            event, replies = self._core.received(text)
        if event is not None:
            self._events.put(event)
            return
        for reply in replies:
            socket.send(reply)
        self._pull(socket)

    def _pull(self, socket: Socket) -> None:
        """Pull as soon as there are places; those that come free in one go are filled by one pull."""
        if self._events.empty():
            with self._lock:
                pull = self._core.pull()
            if pull is not None:
                socket.send(pull)

    def _work(self) -> None:
        """Run one handler after another."""
        self._inside.add(threading.get_ident())
        while (event := self._events.get()) is not None:
            try:
                self._handler(event)
            except BaseException as error:  # noqa: BLE001 - the user's code
                with self._lock:
                    self._core.failed(event)
                self._failed(event, error)
                ack = None
            else:
                with self._lock:
                    ack = self._core.finished(event)
            socket = self._socket
            if socket is None or not self._core.is_connected:
                continue
            with contextlib.suppress(SocketClosed):  # it is sent again on the next connection
                if ack is not None:
                    socket.send(ack)
                self._pull(socket)
