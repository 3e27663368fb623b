"""The facts and events of one step of a dimension: made together, so that they cannot differ (APP-06, CASE-31).

All event identifiers are allocated first and the causes frozen with them: the step's own event is caused by the event
of the revision before, of the finalization for the first; the event of a case by the step's own event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from oceanway.billing.catch_up.works import PLACE, SUBJECT, optional
from oceanway.billing.ledger import text
from oceanway.billing.transitions.evaluate import Change, Money
from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events.settlement import (
    CaseResolutionApplied,
    LateSettlementCaseRequested,
    OwnerTransition,
    SettlementTransitionCommitted,
)
from oceanway.contracts.facts.settlement import ConsumerTransition, SettlementConsumption, SettlementEconomicIdentity
from oceanway.contracts.facts.transitions import (
    ExposureOpen,
    ExposureResolved,
    LateSettlementExposure,
    SettlementTransition,
    TransitionFields,
    late_settlement_case_ref,
    settlement_transition_operation_id,
)
from oceanway.contracts.identity import ALGORITHM, Quad, det, quad_fields
from oceanway.contracts.quints import Absent
from oceanway.contracts.works.catch_up import CatchUpBasis
from seapost.contracts.envelope import new_event_id

if TYPE_CHECKING:
    from oceanway.contracts.events.base import OwnerEvent
    from oceanway.contracts.facts.metering import CurrentValidationReceipt
    from oceanway.contracts.quints import SettlementInputQuint

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension's state, as a decision reads it.

    Attributes:
        identity: tenant to dimension key, by Python name, with the economic identity.
        revision: of the state; the next step starts from it.
        case_ref, opening_revision: of the open case, and the revision that opened it.
        last_event_id: what causes the next step.
        last_evaluated: the input behind the amounts, by wire name.
    """

    identity: Mapping[str, Any]
    revision: int
    money: Money
    case_ref: str | None
    opening_revision: int | None
    last_event_id: str
    last_evaluated: Json

    @classmethod
    def of(cls, document: Json, identity: Mapping[str, Any], economic: SettlementEconomicIdentity) -> Dimension:
        """Read what PostgreSQL put together; `identity` holds at least the names from tenant to dimension key."""
        names = (*SUBJECT.values(), *PLACE.values())
        is_open = document["exposureState"] == "open"
        return cls(
            identity={**{name: identity[name] for name in names}, "settlement_economic_identity": economic},
            revision=document["stateRevision"],
            money=Money(
                Decimal(document["settledAmount"]),
                Decimal(document["waivedAmount"]),
                Decimal(document["exposureAmount"]),
            ),
            case_ref=document["exposureCaseRef"] if is_open else None,
            opening_revision=document["exposureOpeningRevision"] if is_open else None,
            last_event_id=document["lastEventId"],
            last_evaluated=document["lastEvaluatedInput"],
        )

    @property
    def dimension_id(self) -> str:
        """The settlement dimension."""
        economic: SettlementEconomicIdentity = self.identity["settlement_economic_identity"]
        return economic.settlement_dimension_id


@dataclass(frozen=True, slots=True)
class Validation:
    """The one operation under which metering must confirm an input before this step may book (CASE-32).

    Attributes:
        logical_operation_id: stable: the evaluation of this input, whatever revision it starts from.
        operation_id: for this revision and basis only; a rebase makes another (CASE-33).
    """

    logical_operation_id: str
    operation_id: str
    basis: CatchUpBasis
    basis_digest: str


def validation_for(dimension: Dimension, target: SettlementInputQuint) -> Validation:
    """The validation of the step that evaluates `target` from the dimension's present revision."""
    basis = CatchUpBasis(
        settlement_dimension_id=dimension.dimension_id,
        last_evaluated_input=optional(dimension.last_evaluated),
        target_input=target,
        dimension_state_revision=dimension.revision,
    )
    logical = det(
        "settlement_evaluation",
        dimension.dimension_id,
        target.settlement_input_snapshot_ref,
        target.settlement_input_snapshot_digest,
        target.settlement_input_state_version,
    )
    digest = basis.basis_digest()
    operation = settlement_transition_operation_id(
        logical,
        *(dimension.identity[name] for name in ("billing_reservation_id", *PLACE.values())),
        from_revision=dimension.revision,
        basis_digest=digest,
    )
    return Validation(logical, operation, basis, digest)


@dataclass(frozen=True, slots=True)
class Step:
    """Everything that one transition writes, besides the work's Finish and successor."""

    transition: SettlementTransition
    consumption: SettlementConsumption
    exposure: LateSettlementExposure | None
    envelopes: tuple[bytes, ...]


def transition_step(
    dimension: Dimension,
    change: Change,
    validation: Validation,
    receipt: CurrentValidationReceipt,
    *,
    now: str,
) -> Step:
    """The documents of a transition; `now` is the moment of the step."""
    to_revision = dimension.revision + 1
    exposure = _exposure_after(dimension, change, to_revision)
    transition = SettlementTransition.assemble(
        settlement_transition_ref=det("settlement_transition", dimension.dimension_id, to_revision),
        **dimension.identity,
        from_revision=dimension.revision,
        to_revision=to_revision,
        logical_operation_id=validation.logical_operation_id,
        validation_operation_id=validation.operation_id,
        kind=change.kind,
        basis=validation.basis,
        basis_digest_algorithm_version=ALGORITHM,
        basis_digest=validation.basis_digest,
        ledger_delta=text(change.booked),
        waived_delta=text(change.waived - dimension.money.waived),
        exposure=exposure,
        causation_event_id=dimension.last_event_id,
        committed_at=now,
    )
    consumption = SettlementConsumption.assemble(
        settlement_consumption_ref=det("settlement_consumption", transition.settlement_transition_ref),
        **validation.basis.target_input.model_dump(),
        **quad_fields("current_validation_receipt", receipt.quad()),
        consumer=ConsumerTransition(settlement_transition_ref=transition.settlement_transition_ref),
        consumed_at=now,
    )
    fact = None
    if not isinstance(exposure, Absent):
        opened = dimension.opening_revision or to_revision
        fact = exposure_fact(dimension, exposure, opening_revision=opened, revision=to_revision, now=now)
    return Step(transition, consumption, fact, _envelopes(transition, fact))


def exposure_fact(
    dimension: Dimension,
    exposure: ExposureOpen | ExposureResolved,
    *,
    opening_revision: int,
    revision: int,
    now: str,
) -> LateSettlementExposure:
    """The exposure of a case as a step left it."""
    return LateSettlementExposure.assemble(
        late_settlement_exposure_ref=det("late_settlement_exposure", dimension.dimension_id, revision),
        **dimension.identity,
        case_ref=exposure.case_ref,
        opening_revision=opening_revision,
        state_revision=revision,
        exposure=exposure,
        recorded_at=now,
    )


def _exposure_after(dimension: Dimension, change: Change, to_revision: int) -> Absent | ExposureOpen | ExposureResolved:
    if change.kind == "request_open":
        case_ref = late_settlement_case_ref(dimension.dimension_id, to_revision)
        return ExposureOpen(case_ref=case_ref, amount=text(change.exposure))
    if dimension.case_ref is None:
        return Absent()
    if change.kind == "resolve":
        return ExposureResolved(case_ref=dimension.case_ref)
    return ExposureOpen(case_ref=dimension.case_ref, amount=text(change.exposure))


def _envelopes(transition: SettlementTransition, exposure: LateSettlementExposure | None) -> tuple[bytes, ...]:
    """The step's event, and the one of the case that it opens or ends."""
    step_id, case_id = new_event_id(), new_event_id()
    quad = quad_fields("settlement_transition", transition.quad())
    committed = SettlementTransitionCommitted(
        **{name: getattr(transition, name) for name in TransitionFields.model_fields}, **quad
    )
    first = envelope_of(
        committed,
        event_id=step_id,
        causation_id=transition.causation_event_id,
        operation_id=transition.logical_operation_id,
        correlation_id=transition.run_id,
    ).envelope
    if exposure is None or transition.kind == "adjust":
        return (first,)
    shared = shared_fields(transition, exposure.quad(), str(step_id))
    second: OwnerEvent
    if transition.kind == "request_open":
        second = LateSettlementCaseRequested(
            **shared, **quad, case_ref=exposure.case_ref, exposure_amount=_amount(exposure)
        )
    else:
        second = CaseResolutionApplied(**shared, case_ref=exposure.case_ref, owner=OwnerTransition(**quad))
    prepared = envelope_of(
        second,
        event_id=case_id,
        causation_id=str(step_id),
        operation_id=transition.logical_operation_id,
        correlation_id=transition.run_id,
    )
    return first, prepared.envelope


def shared_fields(step: Any, exposure: Quad, causation_event_id: str) -> dict[str, Any]:  # noqa: ANN401 - either fact
    """What the event of a case repeats of its step: economic identity, revisions and cause (CASE-28)."""
    names = (*SUBJECT.values(), *PLACE.values(), "settlement_economic_identity", "from_revision", "to_revision")
    return {
        **{name: getattr(step, name) for name in names},
        **quad_fields("late_settlement_exposure", exposure),
        "causation_event_id": causation_event_id,
    }


def _amount(exposure: LateSettlementExposure) -> str:
    assert isinstance(exposure.exposure, ExposureOpen)  # noqa: S101 - an opening is open
    return exposure.exposure.amount
