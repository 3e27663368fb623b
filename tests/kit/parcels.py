"""A projection for tests: parcels, whose view is the list of what was done with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection

from seapost.inbox.deciding import Deciding, Prepare
from seapost.model.delivery import Claim
from seapost.model.errors import Retry
from seapost.model.outcome import Acknowledged, Outcome
from seapost.projections.projection import Projection
from tests.kit.deciding import EFFECT, RECEIPTS, VIEWER, VIEWS, ViewReceipt, Weighed, claim
from tests.kit.kernel import Kernel, Row


@dataclass
class View:
    """What the mutation of a test does, by the word in the payload."""

    acts: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    applied: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


def parcels(version: str = "1", view: View | None = None, prepare: Prepare | None = None) -> Projection:
    """The projection in one version; `hold` waits, `fail` raises, every other word is applied."""
    watched = view or View()
    projection = Projection(
        "parcels", version, consumer=VIEWER, destination=VIEWS, receipt=ViewReceipt, receipts=RECEIPTS
    )

    @projection.on(Weighed, prepare=prepare)
    def apply(transaction: Connection[Any], event: Weighed, context: Deciding) -> Retry | None:
        received = context.received
        transaction.execute(EFFECT, (received.event_id, f"{event.do}@{version}"))
        watched.applied.append((received.aggregate.id, received.aggregate.revision))
        if event.do in watched.acts:
            return watched.acts[event.do]()
        if event.do == "hold":
            return Retry("the owner is away", code="owner_unreadable")
        if event.do == "fail":
            raise LookupError(event.do)
        return None

    return projection


# Deliveries, and what became of them ----------------------------------------------------------------------


def event(parcel: str, revision: int, do: str = "apply", *, version: str = "1", event_id: str = "") -> Claim:
    """A delivery of one revision of a parcel, by default from a fresh event."""
    changes: dict[str, Any] = {"eventId": event_id} if event_id else {}
    return claim(do, destination=VIEWS, version=version, aggregate=(parcel, revision), **changes)


def codes(outcomes: Sequence[Outcome]) -> list[str]:
    """What each delivery ended in, in one word."""
    return ["applied" if isinstance(one, Acknowledged) else one.code.value for one in outcomes]


def revision(kernel: Kernel, parcel: str, version: str = "1") -> int:
    """How far the parcel was applied."""
    return kernel.value(
        "select coalesce((select revision from seapost.projection_aggregates"
        " where aggregate_id = %s and projection_version = %s), 0)",
        parcel,
        version,
    )


def gaps(kernel: Kernel, parcel: str) -> list[Row]:
    """Expected and seen revision of each gap, and whether it is open."""
    return kernel.rows(
        "select expected_revision, seen_revision, resolved_at is null from seapost.projection_gaps"
        " where aggregate_id = %s order by expected_revision",
        parcel,
    )


def applied_count(kernel: Kernel, version: str = "1") -> int:
    """What the summary of a version says."""
    return kernel.value("select applied_count from seapost.projection_versions where projection_version = %s", version)
