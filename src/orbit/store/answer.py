"""What a request that changes something is answered with: status and body as the database wrote them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request, original or repeated (IDM-09).

    Attributes:
        status: HTTP status.
        body: compact JSON text, to be sent as it is: it carries the exact text of results (SRC-19).
        replayed: the effect is that of an earlier request; this one changed nothing.
    """

    status: int
    body: str
    replayed: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer, and whom its commit concerns.

    Attributes:
        wake_queue_id: queue that has a new result; None when there is none (WSS-17).
    """

    answer: Answer
    wake_queue_id: str | None
