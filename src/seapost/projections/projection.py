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

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeVar

from typing_extensions import override

from seapost.contracts.identifiers import check_name, check_version
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.receipts import ProjectionAppliedReceipt
from seapost.inbox.deciding import Arrived, Deciding, DecidingInbox, Prepare, Round
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import ContractError, InvalidSetting, Retry
from seapost.projections.fold import Many
from seapost.projections.folded import Folded
from seapost.projections.rounds import Revisions, key_of
from seapost.store import completeness as completeness_store
from seapost.store import projections as store

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.contracts.events import Event
    from seapost.contracts.receipt_registry import ReceiptRegistry
    from seapost.contracts.receipts import Receipt
    from seapost.projections.sense import SemanticCheck

MakeReceipt = Callable[[Deciding], "Receipt"]

TABLE_PARTS: Final = 2

MutationT = TypeVar("MutationT", bound=Callable[..., "Retry | None"])
ManyT = TypeVar("ManyT", bound=Many)


class Projection:
    """One version of a projection, and the inbox that feeds it.

    Args:
        name: of the projection, as in the target that events freeze.
        version: of the projection.
        consumer: who receives, as in the delivery set; by default the name of the projection.
        destination: the destination it serves; the consumer's name by default.
        receipt: a receipt type derived from `ProjectionReceipt`; the kernel's own by default.
        moment: Python name of its field that holds the time of the commit.
        receipts: the application's receipt types.
        make_receipt: makes the receipt of an applied event, for a type with fields of its own.
        tables: what the view stands in, as `schema.table`; a proof of completeness covers their rows.
        migration: SQL that makes these tables, run once, in the transaction that registers the version.
        semantic_check: looks at the view inside the snapshot of a proof and says whether it makes sense (ORD-05).

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
        receipt: type[Receipt] = ProjectionAppliedReceipt,
        moment: str = "applied_at",
        receipts: ReceiptRegistry = DEFAULT_RECEIPTS,
        make_receipt: MakeReceipt | None = None,
        tables: Sequence[str] = (),
        migration: LiteralString | None = None,
        semantic_check: SemanticCheck | None = None,
    ) -> None:
        self.target = ProjectionTarget(
            check_name(name, "/projectionName"), check_version(version, "/projectionVersion")
        )
        consumer = name if consumer is None else consumer
        self.receipt = receipt
        self.tables = tuple(_table(name) for name in tables)
        self.semantic_check = semantic_check
        self._make_receipt = make_receipt
        self._migration: LiteralString | None = migration
        self._many: dict[type[Event], Many] = {}
        self.many: Mapping[type[Event], Many] = MappingProxyType(self._many)
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

    def on_many(self, *events: type[Event]) -> Callable[[ManyT], ManyT]:
        """Decorator: one mutation for all events of these types in a transaction at once, for set-based folds.

        It is a plain function of `(transaction, items)`; each item is a `Folded`. All revisions of an aggregate stand
        together and in their order. A delivery brings it one item, a rebuild some thousand.

        Raises:
            InvalidSetting: an event already has a mutation, or the inbox has started.
        """

        def register(mutation: ManyT) -> ManyT:
            for event in events:
                self._register_many(event, mutation)
            return mutation

        return register

    def _register_many(self, event: type[Event], mutation: Many) -> None:
        def apply(transaction: Connection[Any], event: Event, context: Deciding) -> Receipt:
            arrived = Arrived(event, context.received, context.envelope, context.envelope_sha256)
            pair = (event.event_type, event.event_schema_version)
            mutation(transaction, [Folded.of(arrived, self.inbox.handlers[pair])])
            return self._applied(context)

        _ = self.inbox.consumer(event)(apply)
        self._many[event] = mutation

    @property
    def makes_receipts(self) -> bool:
        """Whether its receipts say more than which event was applied."""
        return self._make_receipt is not None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The events that this version folds, as event type and schema version, sorted."""
        return sorted(self.inbox.handlers)

    def register(self, connection: Connection[Any], *, actor: str) -> str:
        """Make this version known to the consumer's database and return its state; needs the operator's role.

        The first version of a projection is `active`, a later one `building` (REF-05). Nothing is applied before. Where
        the version has a migration, its tables are made in the same transaction, and whoever calls this owns them.

        Raises:
            ProjectionChanged: the version is registered with other events or tables: a changed projection is a new one.
        """
        with connection.transaction():
            if self._migration is not None and not store.is_registered(connection, target=self.target):
                _ = connection.execute(self._migration)
            state = store.register(
                connection,
                target=self.target,
                pairs=self.pairs,
                tables=self.tables,
                receipt_key=self.inbox.key,
                actor=actor,
            )
            if self.tables:
                _ = completeness_store.watch(connection, target=self.target)
            return state

    def _applied(self, context: Deciding) -> Receipt:
        if self._make_receipt is not None:
            return self._make_receipt(context)
        return self.receipt.assemble(**context.common)


class _ProjectionInbox(DecidingInbox):
    """Runs events in the order of their aggregates, between meeting and moving them."""

    @override
    def order(self, item: Arrived, /) -> tuple[object, ...]:
        return (*key_of(item), item.received.aggregate.revision, item.received.event_id.int)

    @override
    def begin(self, transaction: Connection[Any], items: Sequence[Arrived], /) -> Round:
        assert self.projection is not None  # noqa: S101 - a projection's inbox has one
        return Revisions(transaction, self.name, self.projection, items)


def _table(name: str) -> tuple[str, str]:
    parts = name.split(".")
    if len(parts) != TABLE_PARTS or not all(parts):
        message = f"tables: {name!r} is no schema.table"
        raise InvalidSetting(message)
    return parts[0], parts[1]
