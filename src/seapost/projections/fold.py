"""One transaction of a feed: the gate, the aggregates, the mutations, the receipts, the revisions, one commit.

Authority: the aggregate rows, locked from `meet` to the commit. Unlike a delivery, a fed event needs no lock of its
own: it has a receipt exactly when its aggregate has passed its revision, and whoever moves the aggregate holds its row.
So a batch is as large as the caller likes, and costs the same few calls.

| The event's revision | |
|---|---|
| the next one of its aggregate | the mutation, then the receipt |
| beyond the next one | waits: a gap is recorded, and the feed meets the event again (OPS-11) |
| already passed | a delivery applied it meanwhile, or another event has this revision: then it is poison |

Failures: whatever a mutation raises ends the transaction, and nothing of it stays. `Feeding` finds the event that is to
blame by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from seapost.contracts.identifiers import write_timestamp
from seapost.inbox.deciding import Deciding
from seapost.model.errors import ContractError, Reject, Retry
from seapost.model.outcome import ErrorCode
from seapost.projections.receipts import ReceiptTemplates
from seapost.store import inbox as inbox_store
from seapost.store import projection_feed as feed_store
from seapost.store import projections as store
from seapost.store.inbox import NewReceipt
from seapost.store.projections import Advance, AggregateKey, Gap

if TYPE_CHECKING:
    from uuid import UUID

    from psycopg import Connection

    from seapost.model.delivery_set import ProjectionTarget
    from seapost.projections.folded import Folded
    from seapost.projections.projection import Projection

Many = Callable[..., None]
"""The mutation of many events: `(transaction, items)`, in the order of their aggregates."""


class FoldResult(NamedTuple):
    """What became of a batch.

    Attributes:
        applied: events that were applied.
        waiting: events that wait for an earlier revision of their aggregate, or for what their mutation asked for.
    """

    applied: int
    waiting: int


class Fold:
    """Applies batches of fed events to one version of a projection."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._target: ProjectionTarget = projection.target
        self._templates = ReceiptTemplates(projection.inbox.decisions, projection.receipt)

    def apply(
        self,
        connection: Connection[Any],
        token: UUID,
        items: Sequence[Folded],
        prepared: dict[UUID, object],
        *,
        accept: bool = False,
    ) -> FoldResult:
        """Apply a batch in one transaction of its own.

        Args:
            token: of the shadow claim.
            prepared: what `prepare` found, by event, for the handlers that have one.
            accept: keep the envelopes; for a source that this database does not hold.

        Raises:
            ClaimFenced: the claim was taken over or paused; nothing was applied.
            Reject: a revision was applied from another event.
        """
        ordered = sorted(items, key=lambda item: (item.key, item.revision))
        keys = list(dict.fromkeys(item.key for item in ordered))
        with connection.transaction():
            met = store.meet(
                connection, target=self._target, token=token, event_ids=[item.event_id for item in ordered], keys=keys
            )
            reached = dict(zip(keys, met, strict=True))
            due, gaps, passed = _sorted_out(ordered, dict(reached))
            if passed:
                self._require_receipts(connection, token, passed)
            moment = inbox_store.committed_at(connection)
            done, held = self._mutate(connection, due, prepared, write_timestamp(moment))
            if done:
                self._record(connection, done)
                _ = store.advance(connection, target=self._target, advances=_advances(done, reached))
                if accept:
                    _ = store.accept(connection, events=[(item.event_id, item.envelope) for item, _ in done])
            if gaps:
                _ = store.wait(connection, target=self._target, gaps=gaps)
        return FoldResult(len(done), len(gaps) + held)

    def _require_receipts(self, connection: Connection[Any], token: UUID, passed: Sequence[Folded]) -> None:
        """A passed revision is fine when this very event was applied; else the source holds two events of it."""
        without = feed_store.missing(
            connection,
            target=self._target,
            token=token,
            event_ids=[item.event_id for item in passed],
        )
        if without:
            reason = f"revision was applied from another event than {min(without)}"
            raise Reject(reason, code=ErrorCode.IDENTITY_CONFLICT)

    def _mutate(
        self, connection: Connection[Any], due: Sequence[Folded], prepared: dict[UUID, object], committed_at: str
    ) -> tuple[list[tuple[Folded, bytes]], int]:
        """Run the mutations in order, runs of one set-based function at once; what was applied, with its receipt."""
        done: list[tuple[Folded, bytes]] = []
        held: set[AggregateKey] = set()
        waiting = 0
        many = self._projection.many
        for function, run in groupby(due, key=lambda item: many.get(type(item.event))):
            items = list(run)
            if function is not None:
                free = [item for item in items if item.key not in held]
                waiting += len(items) - len(free)
                function(connection, free)
                done += [(item, self._candidate(item, committed_at)) for item in free]
                continue
            for item in items:
                candidate = None if item.key in held else self._one(connection, item, prepared, committed_at)
                if candidate is None:
                    held.add(item.key)
                    waiting += 1
                else:
                    done.append((item, candidate))
        return done, waiting

    def _one(
        self, connection: Connection[Any], item: Folded, prepared: dict[UUID, object], committed_at: str
    ) -> bytes | None:
        """Run the mutation of one event; the candidate of its receipt, or None when it has to wait."""
        receipts = self._projection.inbox.decisions
        common = receipts.common(item.subject, committed_at)
        found = prepared.get(item.event_id)
        if isinstance(found, Retry):
            return None
        if isinstance(found, Exception):
            raise found
        context = Deciding(item.received, item.envelope, item.envelope_sha256, committed_at, found, common)
        result = item.handler.function(connection, item.event, context)
        if isinstance(result, Retry):
            return None
        return receipts.check(result, common, item.whole).candidate

    def _candidate(self, item: Folded, committed_at: str) -> bytes:
        if self._projection.makes_receipts:
            message = "A receipt with fields of its own is made by a handler of one event"
            raise ContractError(message, rule="receipt_template")
        return self._templates.candidate(item.subject, committed_at)

    def _record(self, connection: Connection[Any], done: Sequence[tuple[Folded, bytes]]) -> None:
        inbox = self._projection.inbox
        new = [
            NewReceipt(
                item.event_id,
                bytes.fromhex(item.envelope_sha256),
                inbox.decisions.reference(item.subject),
                candidate,
            )
            for item, candidate in done
        ]
        _ = inbox_store.record(connection, consumer=inbox.key, receipts=new)


def _sorted_out(
    ordered: Sequence[Folded], reached: dict[AggregateKey, int]
) -> tuple[list[Folded], list[Gap], list[Folded]]:
    """What is due, what waits behind a gap, and what was passed."""
    due: list[Folded] = []
    gaps: list[Gap] = []
    passed: list[Folded] = []
    for item in ordered:
        expected = reached[item.key] + 1
        if item.revision == expected:
            due.append(item)
            reached[item.key] = expected
        elif item.revision < expected:
            passed.append(item)
        else:
            gaps.append(Gap(item.key, expected, item.revision))
    return due, gaps, passed


def _advances(done: Sequence[tuple[Folded, bytes]], reached: dict[AggregateKey, int]) -> list[Advance]:
    """Each aggregate that moved: from where it was met to its last applied event."""
    last: dict[AggregateKey, Folded] = {item.key: item for item, _ in done}
    return [Advance(key, reached[key], item.revision, item.event_id) for key, item in last.items()]
