"""The in-process transport: a receiver can do what it likes, the dispatcher gets outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from seapost.model.outcome import ErrorCode, Outcome, Retryable
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.protocol import DeliveryRequest, Receiver
from tests.kit.consumer import claim


async def outcomes_of(receiver: Receiver, *, timeout_seconds: float = 5) -> list[tuple[ErrorCode, bool]]:
    """Code and answered of two deliveries to this receiver; both must be retryable."""
    found = await InProcessTransport(receiver).deliver([claim(), claim()], timeout_seconds=timeout_seconds)
    assert len(found) == 2
    assert all(isinstance(item, Retryable) for item in found)
    return [(item.code, item.answered) for item in cast("Sequence[Retryable]", found)]


@pytest.mark.req("RTY-01", "RTY-02", "REF-07")
async def test_exception_is_retryable_and_unanswered() -> None:
    """A receiver that raises leaves every delivery of the call without an answer."""

    async def receiver(_request: DeliveryRequest) -> Sequence[Outcome]:
        raise LookupError

    assert await outcomes_of(receiver) == [(ErrorCode.DEPENDENCY_UNAVAILABLE, False)] * 2


@pytest.mark.req("RTY-02")
async def test_time_limit_is_kept() -> None:
    """A receiver that does not come back is given up after the time limit."""

    async def receiver(_request: DeliveryRequest) -> Sequence[Outcome]:
        return await asyncio.get_running_loop().create_future()

    assert await outcomes_of(receiver, timeout_seconds=0.05) == [(ErrorCode.TIMEOUT, False)] * 2


@pytest.mark.req("DLV-03", "DLV-06")
@pytest.mark.parametrize("answer", [[], [Retryable(ErrorCode.TIMEOUT)], [True, True], ["acknowledged"] * 2, [None] * 2])
async def test_anything_but_outcomes_is_no_answer(answer: list[Any]) -> None:
    """A receiver that returns too few outcomes, or something else, has acknowledged nothing."""

    async def receiver(_request: DeliveryRequest) -> Sequence[Outcome]:
        return answer

    assert await outcomes_of(receiver) == [(ErrorCode.ACK_INVALID, False)] * 2


async def test_cancellation_passes() -> None:
    """Cancelling the call is not turned into an outcome."""
    called = asyncio.Event()

    async def receiver(_request: DeliveryRequest) -> Sequence[Outcome]:
        called.set()
        return await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(cast("Any", InProcessTransport(receiver).deliver([claim()], timeout_seconds=60)))
    await called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
