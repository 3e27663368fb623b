"""What an event does to a lane: a pure decision over the state that the fence's lock gives (A.3, A.4).

| The watermark of the event's source | Decision |
|---|---|
| lower, or none | `advanced`: next generation, from every state; a started work gets its superseded finish |
| higher | `already_observed`: nothing moves, the receipt freezes the lane as it is |
| equal, same event | `already_observed` |
| equal, other event or digest | conflict (MTR-07) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from oceanway.contracts.errors import OwnerConflict
from oceanway.contracts.identity import ALGORITHM, det, digest_of
from oceanway.contracts.works.metering import MeteringInputWork, MeteringInputWorkAttemptFinished
from oceanway.metering.documents import QUAD, TENANT, Document, Sealed, part, quad, read, seal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ELIGIBILITY: Final = "eligibility_and_settlement_input"
COST: Final = "provider_cost"

ELIGIBILITY_SOURCE: Final = "execution_eligibility"
USAGE_SOURCE: Final = "provider_usage"
COST_SOURCE: Final = "provider_cost"

NO_WORK: Final[Document] = {"state": "none"}

Outcome = Literal["advanced", "already_observed"]


@dataclass(frozen=True, slots=True)
class Source:
    """The newest thing that one source of an attempt has said.

    Attributes:
        kind: `execution_eligibility`, `provider_usage` or `provider_cost`.
        gateway_deployment_id, dimension_key: empty for execution.
        identity: schema version, algorithm, digest and reference, by the last part of their wire names.
    """

    kind: str
    gateway_deployment_id: str
    dimension_key: str
    state_version: int
    identity: tuple[str, ...]
    event_id: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Which source of the attempt it is."""
        return self.kind, self.gateway_deployment_id, self.dimension_key

    def fields(self, prefix: str) -> Document:
        """The quad under this prefix, by wire names."""
        return {f"{prefix}{name}": value for name, value in zip(QUAD, self.identity, strict=True)}


@dataclass(frozen=True, slots=True)
class Advance:
    """What an event that advances its lane writes."""

    work: Sealed
    state: Document
    superseded: Sealed | None
    expected_revision: int


def source_of(envelope: Mapping[str, Any]) -> Source:
    """The source of an accepted event."""
    payload = envelope["payload"]
    event_id = str(envelope["eventId"])
    if envelope["eventType"] == "execution.attempt-eligibility.finalized@1":
        identity = tuple(payload[f"executionEligibilityFact{name}"] for name in QUAD)
        return Source(ELIGIBILITY_SOURCE, "", "", envelope["aggregate"]["revision"], identity, event_id)
    return Source(
        payload["providerEvidenceKind"],
        payload["gatewayDeploymentId"],
        payload["evidenceDimensionKey"],
        payload["currentAvailabilityStateVersion"],
        tuple(payload[f"currentAvailability{name}"] for name in QUAD),
        event_id,
    )


def watermark_of(row: Mapping[str, Any]) -> Source:
    """A stored watermark."""
    return Source(
        row["source_kind"],
        row["gateway_deployment_id"],
        row["dimension_key"],
        row["state_version"],
        (row["ref"], row["schema_version"], row["digest_algorithm_version"], row["digest"]),
        row["event_id"],
    )


def lane_of(source: Source) -> Document:
    """The lane that a source feeds: cost its own, everything else that of eligibility (RCP-15 to RCP-17)."""
    if source.kind != COST_SOURCE:
        return {"kind": ELIGIBILITY}
    return {
        "kind": COST,
        "gatewayDeploymentId": source.gateway_deployment_id,
        "sourceEvidenceDimensionKey": source.dimension_key,
    }


def observe(source: Source, watermarks: Sequence[Source]) -> Outcome:
    """Compare an event with the watermark of its source (AMB-36).

    Raises:
        OwnerConflict: the watermark has the same version from another event or with another digest.
    """
    known = next((mark for mark in watermarks if mark.place == source.place), None)
    if known is None or known.state_version < source.state_version:
        return "advanced"
    if known.state_version == source.state_version and known != source:
        raise OwnerConflict("Another event has told this version of the source otherwise.")
    return "already_observed"


def trigger_of(lane: Mapping[str, Any], sources: Sequence[Source]) -> Document:
    """What a work of this lane is about: all watermarks so far (REF-28, AMB-46)."""
    if lane["kind"] == COST:
        [cost] = sources
        return {
            **part(lane, ("gatewayDeploymentId", "sourceEvidenceDimensionKey")),
            **cost.fields("costAvailability"),
            "costAvailabilityStateVersion": cost.state_version,
            "sourceEventId": cost.event_id,
        }
    eligibility = next((one for one in sources if one.kind == ELIGIBILITY_SOURCE), None)
    usage = sorted((one for one in sources if one.kind == USAGE_SOURCE), key=lambda one: one.place)
    return {
        "eligibility": {"state": "none"}
        if eligibility is None
        else {
            "state": "present",
            **eligibility.fields("executionEligibilityFact"),
            "sourceEventId": eligibility.event_id,
        },
        "usage": [
            {
                "gatewayDeploymentId": one.gateway_deployment_id,
                "evidenceDimensionKey": one.dimension_key,
                **one.fields("currentAvailability"),
                "currentAvailabilityStateVersion": one.state_version,
            }
            for one in usage
        ],
    }


def advance(
    source: Source,
    watermarks: Sequence[Source],
    lane: Mapping[str, Any] | None,
    active_work: bytes | None,
    *,
    manifest: Mapping[str, Any],
    moment: str,
) -> Advance:
    """The next generation of a lane, because of this event."""
    generation = 1 if lane is None else lane["latest_work_generation"] + 1
    sources = [*(mark for mark in watermarks if mark.place != source.place), source]
    place, attempt = lane_of(source), manifest["executionAttemptId"]
    trigger = trigger_of(place, sources)
    digest = digest_of(trigger)
    work = seal(
        MeteringInputWork,
        {
            **part(manifest, TENANT),
            "meteringInputWorkRef": det("metering_work", attempt, place, generation),
            "meteringInputWorkOperationId": det("metering_input_work", attempt, place, generation, digest),
            "executionAttemptId": attempt,
            "workGeneration": generation,
            "lane": place,
            "laneTrigger": trigger,
            "laneTriggerDigestAlgorithmVersion": ALGORITHM,
            "laneTriggerDigest": digest,
            "createdAt": moment,
        },
    )
    replaced = None
    if lane is not None and active_work is not None and lane["attempt_number"] > 0:
        replaced = superseded(read(active_work), lane["attempt_number"], lane["fencing_token"], moment)
    return Advance(work, pending(work.document), replaced, generation - 1)


def work_fields(work: Mapping[str, Any]) -> Document:
    """Generation, operation and quad of a work, as lane states name them."""
    return {**part(work, ("workGeneration", "meteringInputWorkOperationId")), **quad("meteringInputWork", work)}


def active(work: Mapping[str, Any]) -> Document:
    """The branch of `activeWork` that names a work."""
    return {"state": "pending", **work_fields(work)}


def pending(work: Mapping[str, Any]) -> Document:
    """The state of a lane whose newest work is to be done (RCP-23)."""
    return {"state": "pending", "activeWork": active(work)}


def superseded(work: Mapping[str, Any], attempt_number: int, token: int, moment: str) -> Sealed:
    """The finish of a started work that the next generation replaced; the same whoever writes it (MTR-11 to MTR-13)."""
    outcome = {
        "kind": work["lane"]["kind"],
        "state": "superseded",
        "supersededByWorkGeneration": work["workGeneration"] + 1,
    }
    return finish(work, attempt_number, token, outcome, moment)


def finish(work: Mapping[str, Any], attempt_number: int, token: int, outcome: Document, moment: str) -> Sealed:
    """The only finish of a work (MTR-10)."""
    fields = {
        "meteringInputWorkAttemptFinishedRef": det("metering_work_finish", work["meteringInputWorkRef"]),
        **attempt_fields(work, attempt_number, token),
        "outcome": outcome,
        "finishedAt": moment,
    }
    return seal(MeteringInputWorkAttemptFinished, fields)


def attempt_fields(work: Mapping[str, Any], attempt_number: int, token: int) -> Document:
    """What finish and blocked records say alike about the attempt at a work."""
    return {
        **work_fields(work),
        "executionAttemptId": work["executionAttemptId"],
        "lane": work["lane"],
        **part(work, ("laneTriggerDigestAlgorithmVersion", "laneTriggerDigest")),
        "attemptNumber": attempt_number,
        "fencingToken": str(token),
    }
