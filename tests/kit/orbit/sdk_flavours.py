"""The two SDKs behind one asynchronous face, so that one test drives both (SDK-03, T-E12).

Everything synchronous runs in threads; a handler is a coroutine function in both cases, which the synchronous consumer
calls through the loop of the test.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from orbit import sdk
from orbit.sdk import ReceivedEvent

Handler = Callable[[ReceivedEvent], Awaitable[None]]
Report = Callable[[ReceivedEvent | None, Exception], None]

FLAVOURS: Final = ("asynchronous", "synchronous")
STOP_SECONDS_MAX: Final = 10.0


class Awaited:
    """An object of either SDK whose methods are awaited; plain members are given as they are.

    Attributes:
        subject: the object itself.
    """

    def __init__(self, subject: Any, flavour: Flavour) -> None:  # noqa: ANN401 - either of two classes
        self.subject = subject
        self._flavour = flavour

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the subject has
        member = getattr(self.subject, name)
        if not callable(member):
            return member

        async def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401
            return await self._flavour.result_of(member, *args, **options)

        return call


class Consuming:
    """An automatic consumer that runs.

    Attributes:
        consumer: the consumer itself, `stats` among others.
        running: the task of `run`.
        errors: what `on_error` was told.
    """

    def __init__(self, consumer: Any, flavour: Flavour) -> None:  # noqa: ANN401 - either of two classes
        self.consumer = consumer
        self.errors: list[tuple[ReceivedEvent | None, Exception]] = []
        self._flavour = flavour
        self.running: asyncio.Future[None] = asyncio.ensure_future(flavour.result_of(consumer.run))

    async def stop(self, *, grace: float = STOP_SECONDS_MAX) -> None:
        """Stop and wait for `run`."""
        await self._flavour.result_of(self.consumer.stop, grace=grace)
        await self.running


class Flavour:
    """One of the two SDKs."""

    def __init__(self, name: str, threads: ThreadPoolExecutor) -> None:
        self.name = name
        self._threads = threads

    def __repr__(self) -> str:
        return self.name

    @property
    def is_async(self) -> bool:
        """Whether this is the asynchronous SDK."""
        return self.name == FLAVOURS[0]

    def kind(self, name: str) -> Any:  # noqa: ANN401 - a class of the SDK
        """The class of this flavour, by the name of the synchronous one."""
        return getattr(sdk, f"Async{name}" if self.is_async else name)

    async def result_of(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:  # noqa: ANN401
        """Call and await, or call in a thread."""
        if not self.is_async:

            def call() -> Any:  # noqa: ANN401
                outcome = function(*args, **options)
                return list(outcome) if inspect.isgenerator(outcome) else outcome

            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        outcome = function(*args, **options)
        if inspect.isasyncgen(outcome):
            return [item async for item in outcome]
        return await outcome

    @asynccontextmanager
    async def client(
        self,
        kind: str,
        base_url: str,
        token: str,
        **options: Any,
    ) -> AsyncGenerator[Awaited]:
        """A `ManagementClient` or a `Worker`, closed at the end."""
        client = self.kind(kind)(base_url, token, **options)
        try:
            yield Awaited(client, self)
        finally:
            await self.result_of(client.aclose if self.is_async else client.close)

    @asynccontextmanager
    async def connection(
        self,
        base_url: str,
        token: str,
        subscription_id: str,
        **options: Any,
    ) -> AsyncGenerator[Awaited]:
        """An event connection, closed at the end."""
        connect = self.kind("EventConnection").connect
        connection = await self.result_of(connect, base_url, token, subscription_id, **({"capacity": 8} | options))
        try:
            yield Awaited(connection, self)
        finally:
            await self.result_of(connection.close)

    @asynccontextmanager
    async def consuming(
        self,
        base_url: str,
        token: str,
        subscription_id: str,
        handler: Handler,
        *,
        prepare: Callable[[Any], None] = lambda _: None,
        **options: Any,
    ) -> AsyncGenerator[Consuming]:
        """A consumer that runs until the block ends; `prepare` gets it before it runs."""
        told: list[tuple[ReceivedEvent | None, Exception]] = []

        def tell(event: ReceivedEvent | None, error: Exception) -> None:
            told.append((event, error))

        options = {"on_error": tell} | options
        consumer = self.kind("EventConsumer")(base_url, token, subscription_id, self._handler(handler), **options)
        prepare(consumer)
        consuming = Consuming(consumer, self)
        consuming.errors = told
        try:
            yield consuming
        finally:
            if not consuming.running.done():
                await consuming.stop(grace=0.0)
            await asyncio.wait({consuming.running})

    def _handler(self, handler: Handler) -> Callable[[ReceivedEvent], Any]:
        if self.is_async:
            return handler
        loop = asyncio.get_running_loop()

        def handle(event: ReceivedEvent) -> None:
            asyncio.run_coroutine_threadsafe(_call(handler, event), loop).result()

        return handle


async def _call(handler: Handler, event: ReceivedEvent) -> None:
    await handler(event)


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - a generator of Flavour
    """Each of the two SDKs in turn."""
    with ThreadPoolExecutor(16) as threads:
        yield Flavour(request.param, threads)
