"""What the gateway answers: the bodies of its events, and whether something is still current (REF-25, REF-30)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.gateway import (
    CostDimension,
    EvidenceChain,
    GatewayEvidence,
    GatewayEvidenceAvailabilitySnapshot,
)
from oceanway.contracts.facts.metering import CurrentValidationReceipt, SubjectAvailability, SubjectRoute
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    GatewayBindingConflictFactQuad,
    GatewayEvidenceConflictFactQuad,
    GatewayRouteSnapshotQuad,
)
from oceanway.contracts.quints import CurrentAvailabilityQuint
from oceanway.contracts.reads import AggregateBinding, EventBinding, NotFound, ReadOperation
from seapost.contracts.fields import Identifier

_WORKER: Final = frozenset({"work.metering"})


class SourceEventQuestion(
    EventBinding,
    AggregateBinding,
    EvidenceChain,
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    GatewayRouteSnapshotQuad,
    CurrentAvailabilityQuint,
):
    """The complete identity of an accepted event, and nothing that is only formed from its body (MTR-27)."""


class SourceEventFound(Contract):
    """The bodies that the event names; no receipt of any kind (MTR-29)."""

    result: Literal["found"] = "found"
    availability_snapshot: GatewayEvidenceAvailabilitySnapshot
    evidence: GatewayEvidence | None = None
    route_cost_binding: CostDimension | None = None


class EvidenceConflict(GatewayEvidenceConflictFactQuad):
    """About the evidence."""

    kind: Literal["gateway_evidence"] = "gateway_evidence"


class BindingConflict(GatewayBindingConflictFactQuad):
    """About the route."""

    kind: Literal["gateway_binding"] = "gateway_binding"


class GatewayConflicting(Contract):
    """Two claims exclude each other, as this fact says."""

    result: Literal["conflicting"] = "conflicting"
    conflict: Annotated[EvidenceConflict | BindingConflict, Field(discriminator="kind")]


class SourceEventAnswer(Contract):
    """What is known of an event's bodies."""

    answer: Annotated[SourceEventFound | NotFound | GatewayConflicting, Field(discriminator="result")]


READ_GATEWAY_SOURCE_EVENT: Final = ReadOperation(
    "readGatewaySourceEvent",
    "gateway",
    "metering_source_event_bootstrap",
    arguments=SourceEventQuestion,
    answer=SourceEventAnswer,
    callers=_WORKER,
)


class AvailabilityValidation(CurrentAvailabilityQuint):
    """Whether this is the current availability of the chain, asked for one operation."""

    validation_operation_id: Identifier
    subject: SubjectAvailability


class RouteValidation(AttemptRouteBindingQuad, GatewayRouteSnapshotQuad):
    """Whether this is the route of the attempt, asked for one operation."""

    validation_operation_id: Identifier
    subject: SubjectRoute


class ValidationCurrent(Contract):
    """It is current, and this receipt says so to the one operation."""

    result: Literal["current"] = "current"
    receipt: CurrentValidationReceipt


class AvailabilitySuperseded(CurrentAvailabilityQuint):
    """There is a newer one; its event is on its way."""

    result: Literal["superseded"] = "superseded"


class RouteSuperseded(AttemptRouteBindingQuad):
    """The attempt has another route."""

    result: Literal["superseded"] = "superseded"


class AvailabilityValidationAnswer(Contract):
    """Whether an availability is current."""

    answer: Annotated[
        ValidationCurrent | AvailabilitySuperseded | NotFound | GatewayConflicting, Field(discriminator="result")
    ]


class RouteValidationAnswer(Contract):
    """Whether a route is current."""

    answer: Annotated[
        ValidationCurrent | RouteSuperseded | NotFound | GatewayConflicting, Field(discriminator="result")
    ]


VALIDATE_GATEWAY_AVAILABILITY_CURRENT: Final = ReadOperation(
    "validateGatewayAvailabilityCurrent",
    "gateway",
    "metering_availability_validation",
    arguments=AvailabilityValidation,
    answer=AvailabilityValidationAnswer,
    callers=_WORKER,
)
VALIDATE_GATEWAY_ROUTE_CURRENT: Final = ReadOperation(
    "validateGatewayRouteCurrent",
    "gateway",
    "metering_route_validation",
    arguments=RouteValidation,
    answer=RouteValidationAnswer,
    callers=_WORKER,
)
