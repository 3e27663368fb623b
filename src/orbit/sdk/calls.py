"""The requests of one event connection and their answers, without a socket: frames go in and out as text.

The asynchronous and the synchronous connection differ in their futures only. A pull whose caller has gone is not
lost: what it brings is given to the next pull.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from orbit.model.codes import ErrorCode
from orbit.sdk import frames
from orbit.sdk.addresses import CLIENT_NAME
from orbit.sdk.errors import DeliveryLeaseLost, OrbitApiError, api_error, status_of
from orbit.sdk.frames import AckAnswer, ErrorFrame, PullDone
from orbit.sdk.values import AckResult, Proof, ReceivedEvent


class Future(Protocol):
    """What `asyncio.Future` and `concurrent.futures.Future` have in common."""

    def done(self) -> bool: ...  # noqa: D102
    def set_result(self, result: Any, /) -> None: ...  # noqa: ANN401, D102
    def set_exception(self, exception: BaseException, /) -> None: ...  # noqa: D102


class Calls:
    """Who waits for what.

    Args:
        new_future: makes the future that a caller will wait for.

    Attributes:
        problem: code of the fatal error that the server sent; the connection ends after it.
    """

    def __init__(self, new_future: Callable[[], Future]) -> None:
        self._new_future = new_future
        self._waiting: dict[str, Future] = {}
        self._numbers = 0
        self._pull: tuple[str, int] | None = None
        self._events: list[ReceivedEvent] = []
        self._ended: Exception | None = None
        self.problem: str | None = None

    def hello(self, subscription_id: str, capacity: int) -> tuple[str, Future]:
        """The first frame, and the future of its `hello_ok`."""
        request_id, future = self._open()
        return frames.hello(request_id, subscription_id, capacity, CLIENT_NAME), future

    def pull(self, most: int, wait: float) -> tuple[str | None, Future]:
        """The frame, or None where an earlier pull serves this one too, and the future of the events."""
        if self._pull is not None and self._waiting[self._pull[0]].done():
            self._pull = (self._pull[0], most)
            future = self._waiting[self._pull[0]] = self._new_future()
            return None, future
        if self._events and self._pull is None:
            future = self._new_future()
            self._give(future, most)
            return None, future
        request_id, future = self._open()
        if self._pull is None:
            self._pull = (request_id, most)
        return frames.pull(request_id, most, wait), future

    def ack(self, proof: Proof) -> tuple[str, Future]:
        """The frame, and the future of its AckResult."""
        request_id, future = self._open()
        return frames.ack(request_id, proof), future

    def ping(self) -> tuple[str, Future]:
        """The frame, and the future of its `pong`."""
        request_id, future = self._open()
        return frames.ping(request_id), future

    def received(self, text: str | bytes) -> None:
        """Give an answer to whoever waits for it. Raises BadFrame."""
        frame = frames.read(text)
        match frame:
            case None:
                pass
            case ReceivedEvent():
                self._events.append(frame)
            case AckAnswer(request_id=request_id):
                self._answer(request_id, ack_outcome(frame))
            case PullDone(request_id=request_id):
                self._pulled(request_id)
            case ErrorFrame():
                self._refused(frame)
            case _:
                self._answer(frame.request_id, frame)

    def ended(self, error: Exception) -> None:
        """The connection is gone: everybody who waits, and who still asks, gets the error."""
        self._ended = error
        for request_id in list(self._waiting):
            self._answer(request_id, error)
        self._pull = None

    def _open(self) -> tuple[str, Future]:
        if self._ended is not None:
            raise self._ended
        self._numbers += 1
        request_id = f"r{self._numbers}"
        future = self._waiting[request_id] = self._new_future()
        return request_id, future

    def _pulled(self, request_id: str) -> None:
        future = self._waiting.pop(request_id, None)
        if self._pull is None or self._pull[0] != request_id or future is None:
            return
        most, self._pull = self._pull[1], None
        if not future.done():
            self._give(future, most)

    def _give(self, future: Future, most: int) -> None:
        given, self._events = self._events[:most], self._events[most:]
        future.set_result(given)

    def _refused(self, frame: ErrorFrame) -> None:
        if frame.fatal:
            self.problem = frame.code
            return
        if frame.request_id is not None:
            if self._pull is not None and self._pull[0] == frame.request_id:
                self._pull = None
            self._answer(frame.request_id, refusal_of(frame))

    def _answer(self, request_id: str, answer: object) -> None:
        future = self._waiting.pop(request_id, None)
        if future is None or future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def ack_outcome(answer: AckAnswer) -> AckResult | DeliveryLeaseLost | OrbitApiError:
    """What an `ack_result` means to the caller of `ack`."""
    if answer.acked_at is not None:
        return AckResult(answer.acked_at, answer.duplicate)
    if answer.code == ErrorCode.DELIVERY_LEASE_LOST:
        return DeliveryLeaseLost(answer.delivery_id)
    code = str(answer.code)
    return api_error(status_of(code), code, f"delivery {answer.delivery_id} was not acknowledged")


def refusal_of(frame: ErrorFrame) -> OrbitApiError:
    """What an `error` frame that does not end the connection means."""
    extensions = frame.model_dump(include={"cursor_sequence", "retained_from_sequence"}, exclude_none=True)
    return api_error(status_of(frame.code), frame.code, frame.message, frame.request_id, extensions)
