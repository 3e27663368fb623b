"""Waiting without sleeping: ask again until it is so, and fail with a message when it does not become so."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, LiteralString, TypeVar

from psycopg import Connection

DEADLINE_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.005

ValueT = TypeVar("ValueT")
Parameters = Sequence[object] | Mapping[str, object]


def eventually(
    question: Callable[[], ValueT], *, what: str = "the condition", deadline_seconds: float = DEADLINE_SECONDS
) -> ValueT:
    """Return the first true answer of `question`; fail when the deadline passes first."""
    deadline = time.monotonic() + deadline_seconds
    pause = threading.Event()
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {deadline_seconds:g} s; last answer: {answer!r}")
        pause.wait(PAUSE_SECONDS)
    return answer


async def eventually_async(
    question: Callable[[], ValueT] | Callable[[], Awaitable[ValueT]],
    *,
    what: str = "the condition",
    deadline_seconds: float = DEADLINE_SECONDS,
) -> ValueT:
    """Asynchronous twin of `eventually`; `question` may be a coroutine function."""
    deadline = time.monotonic() + deadline_seconds
    while True:
        answer: Any = question()
        value: Any = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {deadline_seconds:g} s; last answer: {value!r}")
        await asyncio.sleep(PAUSE_SECONDS)


def eventually_row(
    connection: Connection,
    query: LiteralString,
    parameters: Parameters | None = None,
    *,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> tuple[Any, ...]:
    """Return the first row of `query` as soon as there is one; each look has its own snapshot."""

    def look() -> tuple[Any, ...] | None:
        row = connection.execute(query, parameters).fetchone()
        if not connection.autocommit:
            connection.commit()
        return row

    row = eventually(look, what=f"a row of {query!r}", deadline_seconds=deadline_seconds)
    assert row is not None
    return row
