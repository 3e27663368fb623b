"""What an attempt at a work can come to; deciding makes one of these, and only one place writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oceanway.contracts.identity import digest_of
from oceanway.metering.documents import Document, Sealed, part, read
from oceanway.metering.store import Claim

WaitingFor = Literal["execution_eligibility", "gateway_usage"]


@dataclass(frozen=True, slots=True)
class Task:
    """A leased work, read.

    Attributes:
        envelopes: the accepted events behind its trigger, by kind of source, deployment and dimension.
        pointers: the current snapshots of its attempt with their decisions, by charge dimension.
    """

    work: Document
    manifest: Document
    envelopes: dict[tuple[str, str, str], Document]
    pointers: dict[str, Document]
    attempt_number: int
    token: int

    @property
    def ref(self) -> str:
        """The reference of the work."""
        return str(self.work["meteringInputWorkRef"])


def task_of(claim: Claim) -> Task:
    """Read the documents of a claim."""
    envelopes: dict[tuple[str, str, str], Document] = {}
    for data in claim.envelopes:
        envelope = read(data)
        payload = envelope["payload"]
        kind = payload.get("providerEvidenceKind", "execution_eligibility")
        place = (kind, payload.get("gatewayDeploymentId", ""), payload.get("evidenceDimensionKey", ""))
        envelopes[place] = envelope
    pointers = {row["snapshot"]["chargeDimensionKey"]: row for row in claim.pointers}
    return Task(read(claim.work), read(claim.manifest), envelopes, pointers, claim.attempt_number, claim.fencing_token)


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing can be said now: the lease is given back and nothing is written (MTR-39)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The counterpart is missing; its event will make the next generation."""

    waiting_for: WaitingFor


@dataclass(frozen=True, slots=True)
class OwnerConflicting:
    """An owner answers that claims about its fact exclude each other.

    Attributes:
        fact: the quad of its conflict fact, by wire names.
    """

    fact: Document


@dataclass(frozen=True, slots=True)
class LocalConflict:
    """What the owners say cannot be made into a fact of metering, now or at the next attempt.

    Attributes:
        candidate: what was refused; only its digest is kept.
    """

    stage: str
    reason: str
    candidate: Any

    @property
    def digest(self) -> str:
        """The digest of the refused candidate."""
        return digest_of(self.candidate)


@dataclass(frozen=True, slots=True)
class Validation:
    """A question to the gateway whether something is still current, bound to one operation (MTR-28).

    Attributes:
        stage: of a conflict about the receipt.
        event: the accepted event that named what is validated.
        subject, validated: as the receipt must repeat them.
    """

    purpose: str
    stage: str
    operation_id: str
    event: Document
    subject: Document
    validated: Document


@dataclass(frozen=True, slots=True)
class Applied:
    """An eligibility work is done.

    Attributes:
        snapshots, envelopes: those of the dimensions that changed, in the order of dimensions.
        items: the current snapshot of every charge dimension afterwards.
    """

    decision: Sealed
    receipts: list[bytes]
    meter_events: list[Sealed]
    snapshots: list[Sealed]
    envelopes: list[bytes]
    items: list[Document] = field(default_factory=list[Document])


@dataclass(frozen=True, slots=True)
class Processed:
    """A cost work is done.

    Attributes:
        processing: the processing fact.
        fact: the cost fact, for available evidence alone.
    """

    processing: Sealed
    fact: Sealed | None
    receipts: list[bytes]


Conflict = OwnerConflicting | LocalConflict
Outcome = Later | Waiting | OwnerConflicting | LocalConflict | Applied | Processed

BODY_IDENTITY = (
    "executionAttemptId",
    "gatewayDeploymentId",
    "providerEvidenceKind",
    "evidenceDimensionKey",
    *(
        f"{prefix}{name}"
        for prefix in ("attemptExecutionManifest", "attemptRouteBinding", "gatewayRouteSnapshot")
        for name in ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest")
    ),
)


def same_identity(payload: Document, snapshot: Document) -> bool:
    """Whether a snapshot is the one that an event announced: place, bindings and the complete quint."""
    return part(payload, BODY_IDENTITY) == part(snapshot, BODY_IDENTITY) and all(
        payload[f"currentAvailability{name}"] == snapshot[f"gatewayEvidenceAvailabilitySnapshot{name}"]
        for name in ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest", "StateVersion")
    )
