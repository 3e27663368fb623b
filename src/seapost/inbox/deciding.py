"""A consumer whose receipt says what was decided, so that only its handler can make it.

```python
inbox = seapost.DecidingInbox(
    "metering", destination="metering", receipt=MeteringReceipt, moment="committed_at", receipts=RECEIPTS
)


@inbox.consumer(AttemptFinalized, prepare=read_the_owner)
def advance(transaction, event, context):
    ...
    return MeteringReceipt.assemble(**context.common, outcome="work_scheduled")
```

Authority: the commit, as for every inbox. `inbox_meet_v1` takes the events of a batch, so that of two copies of one
event the second waits for the first one's commit and then is answered with its receipt; handlers run; `inbox_record_v1`
writes what they decided, all in one transaction.

What a handler may end in:

| It | Effects | Receipt | Answer |
|---|---|---|---|
| returns the receipt | stay | written | acknowledged; every redelivery gets the same bytes |
| returns a `Retry` | stay (AMB-17) | none | retryable; the redelivery runs the handler again |
| raises `Retry`, `Reject` or anything else | gone | none | as for every inbox |

What takes long and needs no lock (reads of another owner) is done by `prepare`, before and outside the transaction
(AMB-35). It is called for the events of a batch at once; what it returns reaches the handler as `context.prepared`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from seapost.contracts.digest import ALGORITHM
from seapost.contracts.events import Event
from seapost.contracts.receipts import Receipt
from seapost.inbox.decided import DecidedReceipts
from seapost.inbox.inbox import ARGUMENTS_MAX, Function, Inbox, count_arguments, is_async
from seapost.model.errors import InvalidSetting, Reject, Retry
from seapost.store import inbox as store

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.contracts.content_addressed import Quad
    from seapost.contracts.receipt_registry import ReceiptRegistry
    from seapost.inbox.received import Received
    from seapost.model.delivery_set import ProjectionTarget

TRANSACTION_EVENTS_MAX: Final = 128
"""Events that one transaction takes: each costs the server a lock."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """An event on its way to its handler.

    Attributes:
        envelope: the canonical bytes of the complete event.
        envelope_sha256: their digest, in hexadecimal.
    """

    event: Event
    received: Received
    envelope: bytes
    envelope_sha256: str


@dataclass(frozen=True, slots=True)
class Deciding:
    """What a handler of a deciding inbox is given besides transaction and payload.

    Attributes:
        prepared: what `prepare` returned for this event; None without one.
        common: the fields that the receipt shares with every receipt of this inbox, by Python name: reference,
            destination, consumer, event and the moment.
        committed_at: when this transaction commits, as receipts write it.
    """

    received: Received
    envelope: bytes
    envelope_sha256: str
    committed_at: str
    prepared: Any
    common: Mapping[str, str]


Prepare = Callable[[Sequence[Arrived]], Sequence[object]]
"""Called with the new events of one handler; one result for each, in order.

A result that is a `Retry` or `Reject` is the event's outcome. To raise one of them is to give it to all of them.
"""

Verdict = Retry | Reject | None


class Round(Protocol):
    """What surrounds the handlers of one transaction; positions are those of the new events it was begun with."""

    def verdict(self, position: int, results: Sequence[object]) -> Verdict:
        """Whether the handler may run, given what the events before it ended in; else the event's outcome."""
        ...

    def close(self, results: Sequence[object]) -> None:
        """All handlers ran: each result is a receipt, or the exception that is the event's outcome."""
        ...


class DecidingInbox(Inbox):
    """A consumer whose handlers are plain functions and return the receipt of their event.

    Args:
        name: consumer name, as in the delivery set.
        destination: the destination it serves; its own name by default.
        receipt: the one receipt type of this inbox.
        moment: Python name of its field that holds the time of the commit.
        receipts: the application's receipt types; what it compares is compared before the commit, so that no receipt
            is written which the dispatcher would have to refuse (DLV-19).
        projection: the exact projection that it applies, for a receipt type that proves one (SET-11).
        key: what receipts are kept under, if not the name.

    Raises:
        ContractError: the name or destination breaks its rule, or the receipt type is not registered.
        InvalidSetting: receipt type, moment and projection do not belong together.
    """

    def __init__(
        self,
        name: str,
        *,
        destination: str | None = None,
        receipt: type[Receipt],
        moment: str = "committed_at",
        receipts: ReceiptRegistry,
        projection: ProjectionTarget | None = None,
        key: str | None = None,
    ) -> None:
        kind = receipts.get(receipt.__name__, receipt.schema_version)
        super().__init__(name, destination=destination)
        self.key = self.name if key is None else key
        self.projection = projection
        self.decisions = self.receipts = DecidedReceipts(
            kind, moment=moment, consumer_name=self.name, destination=self.destination, key=self.key, target=projection
        )
        self._prepares: dict[type[Event], Prepare] = {}
        self._prepared = MappingProxyType(self._prepares)

    def consumer(self, event: type[Event], *, prepare: Prepare | None = None) -> Callable[[Function], Function]:
        """Decorator: the function handles exactly this event type and schema version (SET-39).

        It is a plain function, gets a psycopg `Connection` and runs in a thread. Arguments:
        `(transaction, event, context)`, where the context is a `Deciding`; it returns a receipt or a `Retry`.

        Raises:
            InvalidSetting: the event already has a handler, the function is `async def` or takes other arguments, or
                the inbox has started.
        """

        def register(function: Function) -> Function:
            if is_async(function) or count_arguments(function) != ARGUMENTS_MAX:
                raise InvalidSetting(
                    "A handler of a deciding inbox is a plain function of (transaction, event, context)."
                )
            _ = self._register(event, function)
            if prepare is not None:
                self._prepares[event] = prepare
            return function

        return register

    @property
    def prepares(self) -> Mapping[type[Event], Prepare]:
        """What is done before the transaction, by event."""
        return self._prepared

    def order(self, item: Arrived, /) -> tuple[object, ...]:
        """Where the event stands among those of one transaction."""
        return (item.received.event_id.int,)

    def begin(self, transaction: Connection[Any], items: Sequence[Arrived], /) -> Round | None:
        """Called once in each transaction, with its new events, before the first handler."""
        _ = transaction, items
        return None


@dataclass(frozen=True, slots=True)
class Conflicting:
    """The stored receipt is another than the caller expects; it is not shown (RCP-07)."""


def read_decided(
    connection: Connection[Any], inbox: DecidingInbox, *, quad: Quad, event_id: str, event_digest: str
) -> Receipt | Conflicting | None:
    """The targeted read of one receipt: it, None if there is none, or `Conflicting` when anything differs.

    There is no list and no latest (RCP-09). Which further identities must match, beyond the complete quad, the event
    and its digest (in hexadecimal), the caller compares with the receipt it gets.

    Raises:
        psycopg.Error: the database cannot be asked.
    """
    receipts = inbox.decisions
    stored = store.read_sync(
        connection,
        consumer=inbox.key,
        event_id=UUID(event_id),
        event_digest=bytes.fromhex(event_digest),
        receipt_ref=quad.ref,
        receipt_digest=bytes.fromhex(quad.digest),
    )
    if stored.result == "not_found":
        return None
    if stored.receipt_ref is None or stored.candidate is None or stored.committed_at is None:
        return Conflicting()
    if (quad.schema_version, quad.digest_algorithm_version) != (receipts.schema_version, ALGORITHM):
        return Conflicting()
    receipt = receipts.restore(stored.candidate, reference=stored.receipt_ref, committed_at=stored.committed_at)
    return receipt if hmac.compare_digest(receipt.event_id, event_id) else Conflicting()
