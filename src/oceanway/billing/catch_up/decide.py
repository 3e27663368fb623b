"""What a settlement input event means, from the locked state of its dimension: pure (CAT-01 to CAT-10, AMB-07, AMB-36).

| Watermark | Event | Decision |
|---|---|---|
| none, or lower | its predecessor is that watermark, or newer than it | advance |
| lower | its predecessor has the watermark's version and another digest | conflict |
| equal version and digest | without a receipt, so an earlier delivery was held back | advance, without moving it |
| equal version | another digest | conflict |
| higher | | already observed |

Nothing is promised while the reservation is not bound: the watermark stays, the event is retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from oceanway.billing.catch_up.works import PLACE, SUBJECT
from oceanway.contracts.quints import SettlementInputQuint
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from oceanway.contracts.events.metering import SettlementInputCurrentChanged
    from seapost.inbox.received import Received

Json = Mapping[str, Any]

QUINT: Final = {
    "settlementInputSnapshotRef": "settlement_input_snapshot_ref",
    "settlementInputSnapshotSchemaVersion": "settlement_input_snapshot_schema_version",
    "settlementInputSnapshotDigestAlgorithmVersion": "settlement_input_snapshot_digest_algorithm_version",
    "settlementInputSnapshotDigest": "settlement_input_snapshot_digest",
    "settlementInputStateVersion": "settlement_input_state_version",
}
"""The five fields of a settlement input: wire name and Python name."""

Mode = Literal["finalization", "held", "catch_up"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """The event contradicts what it says itself, or what was accepted before; it can never be processed (CAT-10)."""

    code: ErrorCode
    reason: str


@dataclass(frozen=True, slots=True)
class AlreadyObserved:
    """A newer input of the dimension was accepted before (RCP-55)."""

    inbox_revision: int
    highest: SettlementInputQuint


@dataclass(frozen=True, slots=True)
class Unbound:
    """There is no reservation yet; the watermark may be stored, nothing more (CAT-07)."""

    expected_inbox_revision: int
    is_newer: bool


@dataclass(frozen=True, slots=True)
class Advanced:
    """The input is the newest; `mode` says what makes that durable.

    Attributes:
        expected_inbox_revision: before; 0 without a watermark.
        inbox_revision: afterwards.
    """

    mode: Mode
    expected_inbox_revision: int
    inbox_revision: int


Decision = Conflict | AlreadyObserved | Unbound | Advanced


def examine(event: SettlementInputCurrentChanged, received: Received) -> Conflict | None:
    """Whether envelope and payload say the same (CAT-01); their contract has verified payload and predecessor."""
    aggregate = received.aggregate
    stated = (received.producer, aggregate.kind, aggregate.id, aggregate.revision)
    expected = (
        event.event_producer,
        event.aggregate_kind,
        event.dimension_id,
        event.settlement_input_state_version,
    )
    if stated != expected:
        return Conflict(ErrorCode.ENVELOPE_INVARIANT_BROKEN, "The aggregate is not the dimension at this state version")
    if received.tenant != event.tenant():
        return Conflict(ErrorCode.ENVELOPE_INVARIANT_BROKEN, "Envelope and payload name different tenants")
    return None


def decide(event: SettlementInputCurrentChanged, *, fence: Json | None, watermark: Json | None) -> Decision:
    """What becomes of an event.

    Args:
        fence: the finalization fence; None while the reservation is not bound.
        watermark: the newest known input of the dimension, with its identity and inbox revision.
    """
    conflict = _rebound(event, fence, watermark)
    if conflict is not None:
        return conflict
    revision: int = 0 if watermark is None else watermark["inboxRevision"]
    known: int = 0 if watermark is None else watermark["settlementInputStateVersion"]
    version = event.settlement_input_state_version
    if watermark is not None and version == known and not _is_same(event, watermark):
        return Conflict(ErrorCode.DIGEST_CONFLICT, "The watermark has this state version and another digest")
    if watermark is not None and version == known + 1 and not _is_same(event.predecessor, watermark):
        return Conflict(ErrorCode.DIGEST_CONFLICT, "The predecessor is not the input that was accepted")
    if fence is None:
        return Unbound(revision, is_newer=version > known)
    if watermark is not None and version < known:
        return AlreadyObserved(revision, highest_of(watermark))
    mode: Mode = "finalization"
    if fence["state"] == "finalized":
        mode = "catch_up"
    elif fence["state"] == "reconciliation_required":
        mode = "held"
    return Advanced(mode, revision, revision if version == known else revision + 1)


def highest_of(watermark: Json) -> SettlementInputQuint:
    """The input of a watermark."""
    return SettlementInputQuint(**{python: watermark[wire] for wire, python in QUINT.items()})


def _rebound(event: SettlementInputCurrentChanged, fence: Json | None, watermark: Json | None) -> Conflict | None:
    """Whether the event moves a reservation or a dimension to another identity (RCP-54, CASE-28)."""
    if fence is not None:
        if any(getattr(event, python) != fence["subject"].get(wire) for wire, python in SUBJECT.items()):
            return Conflict(ErrorCode.IDENTITY_CONFLICT, "The reservation belongs to another tenant, account or run")
        if event.settlement_economic_identity.currency != fence["currency"]:
            return Conflict(ErrorCode.IDENTITY_CONFLICT, "The reservation has another currency")
    if watermark is not None:
        names = {**PLACE, **{wire: SUBJECT[wire] for wire in ("billingAccountId", "billingReservationId", "runId")}}
        if any(getattr(event, python) != watermark[wire] for wire, python in names.items()):
            return Conflict(ErrorCode.IDENTITY_CONFLICT, "The dimension belongs elsewhere")
        if event.settlement_economic_identity.to_json() != watermark["settlementEconomicIdentity"]:
            return Conflict(ErrorCode.IDENTITY_CONFLICT, "The dimension means something else in money")
    return None


def _is_same(carrier: object, watermark: Json) -> bool:
    """Whether a carrier of a quint names exactly this input; all five fields are compared."""
    return all(getattr(carrier, python, None) == watermark[wire] for wire, python in QUINT.items())
