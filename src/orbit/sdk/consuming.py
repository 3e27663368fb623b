"""What the automatic consumer knows and decides, without socket, task or thread; both consumers are shells around it.

    received(delivery) → started → finished → ack out → ack_result: gone
                                 ↘ failed: gone; the delivery comes back after its lease

An event is *running* from its receipt until its handler ends, and takes one place of `capacity` (SDK-13). A redelivery
of a running event only replaces its proof (SDK-12). An event that is not running starts a handler, whatever was
received before: only the handler's durable inbox decides (SDK-10). A proof stays *unanswered* from the ACK until its
`ack_result`, and is sent again on every new connection until then (SDK-11).

Not thread-safe: the synchronous shell calls it under a lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from orbit.model.codes import ErrorCode
from orbit.sdk import frames
from orbit.sdk.addresses import CLIENT_NAME
from orbit.sdk.calls import ack_outcome, refusal_of
from orbit.sdk.dialing import is_terminal, pause_asked_by
from orbit.sdk.errors import DeliveryLeaseLost, HistoryExpired, OrbitSdkError, Unreachable
from orbit.sdk.frames import AckAnswer, ErrorFrame, HelloOk, PullDone
from orbit.sdk.values import AckResult, ConsumerStats, Proof, ReceivedEvent
from orbit.sdk.waiting import STABLE_SECONDS, Backoff

PATIENCE_SECONDS: Final = 20.0
"""How long after its `wait` a pull, or an ACK, may stay without a frame before the connection counts as lost (F60)."""
GRACE_SECONDS: Final = 25.0

ErrorReport = Callable[[ReceivedEvent | None, Exception], None]

_log: Final = logging.getLogger("orbit.sdk.consumer")


@dataclass(slots=True)
class _Place:
    """One running event: what its handler was given, and the newest proof."""

    event: ReceivedEvent
    newest: ReceivedEvent


class Consumption:
    """The state of one automatic consumer.

    Attributes:
        backoff: how long to wait before a reconnect.
        problem: code of the fatal error of the connection that is open.
        draining: nothing new is pulled or started; what runs is finished and acknowledged.
        deadline: `time.monotonic()` after which draining ends anyway; None while nothing limits it.
    """

    def __init__(
        self, subscription_id: str, *, capacity: int, wait: float, on_error: ErrorReport | None, backoff: Backoff
    ) -> None:
        self._subscription_id = subscription_id
        self._capacity = capacity
        self._wait = wait
        self._on_error = on_error
        self._running: dict[str, _Place] = {}
        self._unanswered: dict[str, Proof] = {}
        self._numbers = 0
        self._pull: str | None = None
        self._connected_at: float | None = None
        self._last_sign = 0.0
        self._frame_at: float | None = None
        self._delivery_at: float | None = None
        self._last_pull_reason: str | None = None
        self._acked = 0
        self._redelivered = 0
        self._end: OrbitSdkError | None = None
        self.backoff = backoff
        self.problem: str | None = None
        self.draining = False
        self.deadline: float | None = None

    # The connection

    def hello(self) -> str:
        """The first frame of a new connection."""
        self.problem = None
        self._pull = None
        self._last_sign = time.monotonic()
        return frames.hello(self._next_id(), self._subscription_id, self._capacity, CLIENT_NAME)

    def lost(self, error: OrbitSdkError) -> float:
        """The connection ended, or none came about; how long to wait before the next. Raises what is terminal."""
        lasted = 0.0 if self._connected_at is None else time.monotonic() - self._connected_at
        self._connected_at = None
        self._pull = None
        if self.finished_draining:
            return 0.0
        if is_terminal(error):
            raise error
        self.report(None, error)
        if lasted >= STABLE_SECONDS:
            self.backoff.reset()
        return pause_asked_by(error) + self.backoff.after_failure()

    def ended(self) -> None:
        """`run` is over, and with it the connection, if there was one."""
        self._connected_at = None

    @property
    def silent(self) -> Unreachable | None:
        """Why the connection must be given up: it is open, yet what it owes does not come (F60)."""
        owes_pull = self._pull is not None
        if not owes_pull and not self._unanswered and self._connected_at is not None:
            return None
        patience = PATIENCE_SECONDS + (self._wait if owes_pull else 0.0)
        if time.monotonic() - self._last_sign < patience:
            return None
        return Unreachable(f"the connection is open, but nothing came for {patience:g} s")

    # Frames

    def received(self, text: str | bytes) -> tuple[ReceivedEvent | None, list[str]]:
        """Take in one frame: the event whose handler is to be started, and frames to send. Raises BadFrame."""
        frame = frames.read(text)
        self._frame_at = time.time()
        self._last_sign = time.monotonic()
        if isinstance(frame, ReceivedEvent):
            return self._delivered(frame), []
        if isinstance(frame, AckAnswer):
            self._answered(frame)
        elif isinstance(frame, PullDone):
            self._last_pull_reason = frame.reason
            if frame.request_id == self._pull:
                self._pull = None
        elif isinstance(frame, HelloOk):
            return None, self._confirmed()
        elif isinstance(frame, ErrorFrame):
            self._refused(frame)
        return None, []

    def pull(self) -> str | None:
        """The next pull, if there are free places and none is open; `max` is the number of free places."""
        free = self._capacity - len(self._running)
        if free < 1 or self._pull is not None or self.draining or self._connected_at is None:
            return None
        self._pull = self._next_id()
        self._last_sign = time.monotonic()
        return frames.pull(self._pull, free, self._wait)

    def _confirmed(self) -> list[str]:
        """The subscription is confirmed: send again what got no answer on an earlier connection."""
        self._connected_at = time.monotonic()
        again, self._unanswered = self._unanswered, {}
        return [self._ack(proof) for proof in again.values()]

    def _delivered(self, event: ReceivedEvent) -> ReceivedEvent | None:
        self._delivery_at = self._frame_at
        if event.attempts > 1:
            self._redelivered += 1
        place = self._running.get(event.event_id)
        if place is not None:
            place.newest = event
            return None
        if self.draining:
            return None
        self._running[event.event_id] = _Place(event, event)
        return event

    def _answered(self, answer: AckAnswer) -> None:
        if self._unanswered.pop(answer.request_id, None) is None:
            return
        outcome = ack_outcome(answer)
        if isinstance(outcome, AckResult):
            self._acked += 1
        elif isinstance(outcome, DeliveryLeaseLost):
            _log.info("delivery %s was replaced before its ACK; its redelivery is awaited", answer.delivery_id)
        else:
            self.report(None, outcome)

    def _refused(self, frame: ErrorFrame) -> None:
        if frame.fatal:
            self.problem = frame.code
            return
        refusal = refusal_of(frame)
        if frame.request_id == self._pull:
            self._pull = None
        if isinstance(refusal, HistoryExpired):
            self._end, self.draining = refusal, True
        elif frame.code != ErrorCode.PULL_IN_PROGRESS:
            self.report(None, refusal)

    # Handlers

    def finished(self, event: ReceivedEvent) -> str:
        """The handler returned: the ACK with the newest proof (SDK-09, SDK-12)."""
        return self._ack(self._running.pop(event.event_id).newest.proof)

    def failed(self, event: ReceivedEvent) -> None:
        """The handler raised: no ACK."""
        self._running.pop(event.event_id, None)

    def report(self, event: ReceivedEvent | None, error: Exception) -> None:
        """Tell `on_error`, or the log where there is none; neither can stop the consumer."""
        if self._on_error is None:
            what = "the event connection" if event is None else f"the handler of {event!r}"
            _log.warning("%s failed: %s", what, error, exc_info=error if event is not None else None)
            return
        try:
            self._on_error(event, error)
        except Exception:  # noqa: BLE001 - the user's code
            _log.exception("on_error failed")

    def _ack(self, proof: Proof) -> str:
        request_id = self._next_id()
        if not self._unanswered:
            self._last_sign = time.monotonic()
        self._unanswered[request_id] = proof
        return frames.ack(request_id, proof)

    def _next_id(self) -> str:
        self._numbers += 1
        return f"r{self._numbers}"

    # The end

    def stop(self, grace: float) -> None:
        """Pull no more; what runs has `grace` seconds. Takes no lock, so that a signal handler may call it."""
        self.deadline = time.monotonic() + grace
        self.draining = True

    @property
    def is_running(self) -> bool:
        """A handler runs."""
        return bool(self._running)

    @property
    def is_connected(self) -> bool:
        """The server has confirmed the subscription; before that nothing but `hello` may be sent."""
        return self._connected_at is not None

    @property
    def overdue(self) -> bool:
        """The grace is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def finished_draining(self) -> bool:
        """Nothing is left to be done: no handler runs and every ACK has its answer, or the grace is over."""
        return self.draining and (self.overdue or not (self._running or self._unanswered))

    def raise_end(self) -> None:
        """Raise why the consumer ended by itself, if it did (WSS-15)."""
        if self._end is not None:
            raise self._end

    @property
    def stats(self) -> ConsumerStats:
        """As SDK-18 lists them."""
        return ConsumerStats(
            connected=self._connected_at is not None,
            last_frame_at=self._frame_at,
            last_delivery_at=self._delivery_at,
            last_pull_reason=self._last_pull_reason,
            running=len(self._running),
            acked=self._acked,
            redelivered=self._redelivered,
        )
