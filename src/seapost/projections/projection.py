"""A view folded from events, in one exact version; every event is applied once, in the order of its aggregate.

```python
orders = seapost.Projection(
    "operations",
    "1",
    consumer="operations_projector",
    destination="core_operations",
    receipt=OperationsProjectionAppliedReceipt,
    moment="applied_at",
    receipts=RECEIPTS,
)


@orders.on(RunCreated)
def apply(transaction, event, context):
    transaction.execute(...)  # the mutation only
```

Authority: the consumer's commit (OPS-01, OPS-08). One transaction takes the events, locks their aggregates, runs the
mutations, moves the aggregates, adds to the summary and writes the receipts; either all of that is there or nothing.

What the revision of an event is to its aggregate decides (OPS-04, ORD-02):

| Revision | |
|---|---|
| of an event with a receipt here | the first receipt again; a different digest is refused for good (OPS-09, OPS-10) |
| the next one | the mutation, then the receipt |
| beyond the next one | a gap is recorded, no receipt; retryable `revision_gap` until the missing one came (OPS-11) |
| already applied, by another event | non_retryable `identity_conflict` |

Aggregates do not wait for each other (ORD-03). A mutation that returns a `Retry` keeps what it wrote and leaves the
revision where it was; later events of the aggregate then wait as behind a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from seapost.contracts.identifiers import check_name, check_version
from seapost.inbox.deciding import Arrived, Deciding, DecidingInbox, Prepare, Round
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import ContractError, Retry
from seapost.projections.rounds import Revisions, key_of
from seapost.store import projections as store

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.contracts.events import Event
    from seapost.contracts.receipt_registry import ReceiptRegistry
    from seapost.contracts.receipts import Receipt

MakeReceipt = Callable[[Deciding], "Receipt"]

MutationT = TypeVar("MutationT", bound=Callable[..., "Retry | None"])


class Projection:
    """One version of a projection, and the inbox that feeds it.

    Args:
        name: of the projection, as in the target that events freeze.
        version: of the projection.
        consumer: who receives, as in the delivery set; by default the name of the projection.
        destination: the destination it serves; the consumer's name by default.
        receipt: a receipt type derived from `ProjectionReceipt`.
        moment: Python name of its field that holds the time of the commit.
        receipts: the application's receipt types.
        make_receipt: makes the receipt of an applied event, for a type with fields of its own.

    Raises:
        ContractError: a name or version breaks its rule, or the receipt type is not registered.
        InvalidSetting: the receipt type proves no projection, or its digest leaves out too much.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        consumer: str | None = None,
        destination: str | None = None,
        receipt: type[Receipt],
        moment: str = "applied_at",
        receipts: ReceiptRegistry,
        make_receipt: MakeReceipt | None = None,
    ) -> None:
        self.target = ProjectionTarget(
            check_name(name, "/projectionName"), check_version(version, "/projectionVersion")
        )
        consumer = name if consumer is None else consumer
        self._receipt = receipt
        self._make_receipt = make_receipt
        self.inbox: DecidingInbox = _ProjectionInbox(
            consumer,
            destination=destination,
            receipt=receipt,
            moment=moment,
            receipts=receipts,
            projection=self.target,
            key=f"{consumer}@{name}@{version}",
        )

    def on(self, event: type[Event], *, prepare: Prepare | None = None) -> Callable[[MutationT], MutationT]:
        """Decorator: the mutation for exactly this event type and schema version.

        It is a plain function of `(transaction, event, context)` and changes the view, nothing else. A `Retry` that it
        returns says that the event has to wait, and keeps what was written.

        Raises:
            InvalidSetting: the event already has one, the function takes other arguments, or the inbox has started.
        """

        def register(mutation: MutationT) -> MutationT:
            def apply(transaction: Connection[Any], event: Event, context: Deciding) -> Receipt | Retry:
                result: object = mutation(transaction, event, context)
                if isinstance(result, Retry):
                    return result
                if result is not None:
                    message = f"The mutation of {event.event_type} returned {type(result).__name__}"
                    raise ContractError(message, rule="mutation_result")
                return self._applied(context)

            _ = self.inbox.consumer(event, prepare=prepare)(apply)
            return mutation

        return register

    def register(self, connection: Connection[Any], *, actor: str) -> str:
        """Make this version known to the consumer's database and return its state; needs the operator's role.

        The first version of a projection is `active`, a later one `building` (REF-05). Nothing is applied before.
        """
        return store.register(connection, target=self.target, actor=actor)

    def _applied(self, context: Deciding) -> Receipt:
        if self._make_receipt is not None:
            return self._make_receipt(context)
        return self._receipt.assemble(**context.common)


class _ProjectionInbox(DecidingInbox):
    """Runs events in the order of their aggregates, between meeting and moving them."""

    @override
    def order(self, item: Arrived, /) -> tuple[object, ...]:
        return (*key_of(item), item.received.aggregate.revision, item.received.event_id.int)

    @override
    def begin(self, transaction: Connection[Any], items: Sequence[Arrived], /) -> Round:
        assert self.projection is not None  # noqa: S101 - a projection's inbox has one
        return Revisions(transaction, self.name, self.projection, items)
