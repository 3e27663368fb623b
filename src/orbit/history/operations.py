"""The lines of a history: what clients asked and were answered, and what the database says of it afterwards.

A history is a file of JSON Lines. A line is an *operation* of a client (it has an id, a process, a begin and, once it
was answered, an end) or a *fact* that a database shows when all is over. An operation may have two lines, one when it
begins and one when it ends: the last line of an id counts, so that a process that dies in between leaves an operation
without an end behind, and nothing has to be repaired.

Lines made from the audit log carry the process `database`. Their begin and end are one moment inside the transaction,
under the lock that orders it; those of clients are the client's own clock. Secrets and result bodies never enter a
history: proofs, keys, receipts and snapshots are digests (`digest_of`).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from orbit.model.states import DeliveryState, ResultType, SubscriptionStatus

DATABASE: Final = "database"
"""The process of operations that were read from the audit log."""
DIGEST_LENGTH: Final = 32
"""Hex digits of a digest: 128 bits are enough to tell contents apart."""

Digest = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{DIGEST_LENGTH}}}$")]


def digest_of(content: str) -> str:
    """What stands in a history for a secret, a key, a receipt or a snapshot: 32 hex digits.

    The text is hashed behind a prefix, so that the digest of a lease secret is not the one that the database compares.
    """
    return hashlib.sha256(b"orbit-history\0" + content.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]


class Line(BaseModel):
    """One line of a history; unknown members are refused, because they would not be checked."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Operation(Line):
    """Something that was asked for.

    Attributes:
        id: joins the two lines of one operation.
        process: who asked, or `database`.
        begin, end: before the request left and after the answer came; no end: nobody knows what became of it.
    """

    id: str
    process: str
    begin: datetime
    end: datetime | None = None


class Confirm(Operation):
    """A task reached a result: by a worker, a cancellation, an operator's word or a recovery (SRC-09).

    Attributes:
        sequence: position in the stream; None for a requeued task, and while the answer is missing.
        receipt: digest of the receipt that the worker got.
    """

    op: Literal["confirm"] = "confirm"
    way: Literal["confirmed", "cancelled", "resolved", "recovered"] = "confirmed"
    namespace: str = ""
    task: str
    attempt: str | None = None
    event: str | None = None
    event_type: str | None = None
    sequence: int | None = None
    receipt: Digest | None = None


class Create(Operation):
    """A subscription was made; `from_sequence` is the border that the answer names."""

    op: Literal["create"] = "create"
    subscription: str | None = None
    from_sequence: int | None = None
    key: Digest | None = None
    receipt: Digest | None = None


class Leased(Line):
    """One delivery as a claim handed it out.

    Attributes:
        proof: digest of the lease secret; the audit log knows none.
        snapshot: digest of the snapshot's exact text.
    """

    delivery: str
    event: str
    sequence: int
    epoch: int
    attempts: int
    lease_expires_at: datetime
    event_type: ResultType | None = None
    proof: Digest | None = None
    snapshot: Digest | None = None


class Claim(Operation):
    """Deliveries were leased to a connection; the counts are those of the end of the pull, if the client saw it."""

    op: Literal["claim"] = "claim"
    subscription: str
    connection: str
    leased: tuple[Leased, ...] = ()
    pending_count: int | None = None
    max_pending: int | None = None


class Ack(Operation):
    """A proof was sent back; `acked_at` is the server's time of the one effective ACK."""

    op: Literal["ack"] = "ack"
    subscription: str
    delivery: str
    epoch: int
    proof: Digest | None = None
    outcome: Literal["ACKED", "REJECTED"] | None = None
    acked_at: datetime | None = None
    duplicate: bool | None = None


class Retry(Operation):
    """An operator gave a delivery further attempts."""

    op: Literal["retry"] = "retry"
    subscription: str
    delivery: str
    additional_attempts: int
    key: Digest | None = None
    receipt: Digest | None = None


class Switch(Operation):
    """A subscription was paused or resumed."""

    op: Literal["pause", "resume"]
    subscription: str
    key: Digest | None = None
    receipt: Digest | None = None


class Aged(Operation):
    """Somebody moved a lease's deadline by hand, as tests do that cannot wait; its times prove nothing any more."""

    op: Literal["aged"] = "aged"
    delivery: str


class StreamFact(Line):
    """A namespace's stream, as its view shows it."""

    op: Literal["stream"] = "stream"
    namespace: str
    last_sequence: int
    retained_from: int


class ResultFact(Line):
    """One row of the journal; `begin` is the time of its state event, `end` that of the row itself."""

    op: Literal["result"] = "result"
    namespace: str
    queue: str
    task: str
    event: str
    event_type: ResultType
    sequence: int
    snapshot: Digest
    begin: datetime
    end: datetime


class SubscriptionFact(Line):
    """One subscription, as its row shows it."""

    op: Literal["subscription"] = "subscription"
    subscription: str
    namespace: str
    queue: str
    types: tuple[ResultType, ...]
    status: SubscriptionStatus
    from_sequence: int
    cursor: int
    pending_count: int
    max_pending: int
    max_attempts: int
    revision: int


class DeliveryFact(Line):
    """One delivery, as its row shows it; `created_at` is when it was materialised."""

    op: Literal["delivery"] = "delivery"
    delivery: str
    subscription: str
    event: str
    sequence: int
    state: DeliveryState
    attempts: int
    epoch: int
    budget: int
    created_at: datetime
    acked_at: datetime | None = None


AnyLine = Annotated[
    Confirm | Create | Claim | Ack | Retry | Switch | Aged | StreamFact | ResultFact | SubscriptionFact | DeliveryFact,
    Field(discriminator="op"),
]

LINE: Final[TypeAdapter[AnyLine]] = TypeAdapter(AnyLine)
"""Reads one line, and tells what is wrong with it."""
