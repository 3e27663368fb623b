"""One valid instance of every contract, and one for each branch of its unions.

`valid(cls, **changes)` fills every field that is not given: by its name, so that what must agree between two objects
agrees, and what follows from other fields (deterministic identities, counts, sums) follows from them. `variants(cls)`
adds an instance for each branch that the contract allows.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

from oceanway.contracts import quints
from oceanway.contracts.events import CaseResolutionApplied, LateSettlementCaseRequested
from oceanway.contracts.facts import (
    cases,
    catch_up,
    execution,
    finalization,
    gateway,
    metering,
    resolution,
    transitions,
)
from oceanway.contracts.facts.settlement import SettlementEconomicIdentity, settlement_dimension_id
from oceanway.contracts.identity import digest_of
from oceanway.contracts.receipts.catch_up import OutcomeAlreadyObserved
from oceanway.contracts.receipts.metering import MeteringInputProcessorConsumerReceipt
from oceanway.contracts.receipts.metering_states import EligibilityWaiting
from oceanway.contracts.works import catch_up as catch_up_works
from oceanway.contracts.works import finalization as finalization_works
from oceanway.contracts.works import metering as metering_works
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.contract import StrictModel
from seapost.model.errors import ContractError

ModelT = TypeVar("ModelT", bound=StrictModel)
Fields = dict[str, Any]

MOMENT: Final = "2026-03-29T01:30:00.000000Z"
EVENT_ID: Final = "0195e0a0-1111-7000-8000-0123456789ab"

_TEXTS: Final[Mapping[str, str]] = {
    "currency": "EUR",
    "digest": digest_of("digest"),
    "quantity_unit": "token",
    "unit": "token",
    "fencing_token": "7",
    "quantity": "12.5",
    "value": "12.5",
    "unit_price": "0.04",
    "amount": "0.5",
    "exposure_amount": "0.5",
    "ledger_delta": "0.5",
    "waived_delta": "0",
    "reserved_amount": "2",
    "settled_amount": "0.5",
    "released_amount": "1.5",
    "event_type": "run.created@2.0",
    "aggregate_kind": "run",
    "projection_name": "operations",
    "case_requested_envelope": "{}",
}
_SUFFIXES: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("_digest", digest_of),
    ("_sha256", digest_of),
    ("event_id", lambda _: EVENT_ID),
    ("_at", lambda _: MOMENT),
    ("version", lambda _: "1"),
)


def valid(model: type[ModelT], **changes: object) -> ModelT:
    """A valid instance, with these fields instead of the usual ones."""
    fields: Fields = dict(changes)
    prepare = next((made for kind, made in _PREPARED.items() if issubclass(model, kind)), None)
    if prepare is not None:
        for name, value in prepare(fields).items():
            fields.setdefault(name, value)
    addressed = _quad_names(model)
    for name, field in model.model_fields.items():
        if name not in fields and name not in addressed and name not in _DERIVED:
            fields[name] = _value(name, field.annotation)
    for name, derive in _DERIVED.items():
        if name in model.model_fields and name not in fields:
            fields[name] = derive(fields)
    if issubclass(model, ContentAddressed):
        return cast("ModelT", model.assemble(**fields))
    return model(**fields)


def variants(model: type[ModelT]) -> Iterator[ModelT]:
    """The usual instance, and one for each further branch of a union in it that the contract allows there."""
    yield valid(model)
    addressed = _quad_names(model)
    for name, field in model.model_fields.items():
        if name in addressed:
            continue
        for value in _alternatives(name, field.annotation):
            try:
                yield valid(model, **{name: value})
            except ContractError:
                continue  # another branch of another field is needed for this one


def _quad_names(model: type[StrictModel]) -> frozenset[str]:
    """The three fields that `assemble` fills in."""
    if not issubclass(model, ContentAddressed):
        return frozenset()
    addressing = model.addressing
    names = (addressing.schema_version, addressing.algorithm, addressing.digest)
    return frozenset(addressing.python[name] for name in names)


def _value(name: str, annotation: Any) -> Any:  # noqa: ANN401 - one line for each kind of type
    annotation = _bare(annotation)
    if get_origin(annotation) is Literal:
        return get_args(annotation)[0]
    if get_origin(annotation) is list:
        return [_value(_singular(name), get_args(annotation)[0])]
    if get_origin(annotation) in {Union, types.UnionType}:
        branches = [branch for branch in get_args(annotation) if branch is not type(None)]
        is_optional = len(branches) < len(get_args(annotation))
        return None if is_optional and name != "project_id" else _value(name, branches[0])
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return valid(annotation)
    if annotation is int:
        return 1
    return _text(name)


def _text(name: str) -> str:
    known = _TEXTS.get(name)
    if known is not None:
        return known
    return next((make(name) for suffix, make in _SUFFIXES if name.endswith(suffix)), f"{name}-1")


def _alternatives(name: str, annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - a type
    annotation = _bare(annotation)
    if get_origin(annotation) is list:
        for value in _alternatives(_singular(name), get_args(annotation)[0]):
            yield [value]
    elif get_origin(annotation) in {Union, types.UnionType}:
        for branch in get_args(annotation):
            bare = _bare(branch)
            if isinstance(bare, type) and issubclass(bare, StrictModel):
                yield from variants(bare)
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)[1:]
    elif isinstance(annotation, type) and issubclass(annotation, StrictModel):
        yield from list(variants(annotation))[1:]


def _bare(annotation: Any) -> Any:  # noqa: ANN401 - a type
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _singular(name: str) -> str:
    return name.removesuffix("s")


def _economic_identity(fields: Fields) -> SettlementEconomicIdentity:
    return SettlementEconomicIdentity.of(
        settlement_dimension_id=_dimension_id(fields),
        charge_dimension_key=fields["charge_dimension_key"],
        quantity_unit="token",
        currency="EUR",
        price_book_ref="price_book_ref-1",
        price_book_version="1",
    )


def _dimension_id(fields: Fields) -> str:
    names = ("billing_reservation_id", "run_step_id", "execution_attempt_id", "charge_dimension_key")
    return settlement_dimension_id(*(fields.get(name, f"{name}-1") for name in names))


def _work_operation(fields: Fields) -> str:
    lane, generation = fields.get("lane"), fields.get("work_generation", 1)
    if lane is None:
        return "metering_input_work_operation_id-1"
    return metering_works.metering_input_work_operation_id(
        fields["execution_attempt_id"], lane, generation, fields["lane_trigger_digest"]
    )


def _catch_up_operation(fields: Fields) -> str:
    digest = fields.get("basis_digest", digest_of("basis_digest"))
    return catch_up_works.billing_catch_up_validation_operation_id(
        _dimension_id(fields), fields["work_generation"], digest
    )


def _validation_operation(fields: Fields) -> str:
    if "logical_operation_id" not in fields:
        return "validation_operation_id-1"
    return transitions.settlement_transition_operation_id(
        fields["logical_operation_id"],
        fields["billing_reservation_id"],
        fields["run_step_id"],
        fields["execution_attempt_id"],
        fields["charge_dimension_key"],
        from_revision=fields["from_revision"],
        basis_digest=fields["basis_digest"],
    )


def _fence(fields: Fields) -> str:
    return cases.finalization_fence_id(
        fields.get("billing_reservation_id", "billing_reservation_id-1"), fields.get("run_id", "run_id-1")
    )


def _case(fields: Fields) -> str:
    return cases.finalization_case_ref(_fence(fields), fields.get("reconciliation_generation", 1))


def _late_case(fields: Fields) -> str:
    opening = fields.get("opening_revision", 2)
    return transitions.late_settlement_case_ref(_dimension_id(fields), opening)


def _logical(fields: Fields) -> str:
    if "action" not in fields:
        return "logical_operation_id-1"
    revision = fields["expected_state_revision"] if "expected_state_revision" in fields else fields["from_revision"]
    return transitions.late_settlement_operation_id(fields["case_ref"], revision)


_DERIVED: Final[Mapping[str, Callable[[Fields], Any]]] = {
    "basis_digest": lambda fields: fields["basis"].basis_digest() if "basis" in fields else digest_of("basis_digest"),
    "settlement_dimension_id": _dimension_id,
    "settlement_economic_identity": _economic_identity,
    "settlement_economic_identity_digest": lambda fields: (
        _economic_identity(fields).settlement_economic_identity_digest
    ),
    "closure_operation_id": lambda fields: execution.closure_operation_id(fields["run_id"]),
    "billing_finalization_fence_id": _fence,
    "reconciliation_case_ref": _case,
    "case_request_operation_id": lambda fields: cases.case_request_operation_id(
        _fence(fields), fields["reconciliation_generation"]
    ),
    "resolution_operation_id": lambda fields: resolution.resolution_operation_id(
        fields.get("reconciliation_case_ref", "reconciliation_case_ref-1"), fields.get("reconciliation_generation", 1)
    ),
    "lane_trigger_digest": lambda fields: (
        fields["lane_trigger"].trigger_digest() if "lane_trigger" in fields else digest_of("lane_trigger_digest")
    ),
    "metering_input_work_operation_id": _work_operation,
    "billing_finalization_operation_id": lambda fields: finalization_works.billing_finalization_operation_id(
        _fence(fields), fields.get("work_generation", 1), digest_of("billing_finalization_trigger_snapshot_digest")
    ),
    "billing_catch_up_validation_operation_id": _catch_up_operation,
    "case_ref": _late_case,
    "logical_operation_id": _logical,
    "validation_operation_id": _validation_operation,
}
"""What follows from the other fields, in an order in which each finds what it needs."""


def _evidence(fields: Fields) -> Fields:
    is_usage = fields.get("kind", "provider_usage") == "provider_usage"
    return {"unit": "token" if is_usage else None, "currency": None if is_usage else "EUR"}


def _version_after(prefix: str) -> Callable[[Fields], Fields]:
    """A snapshot one version after its predecessor."""

    def prepare(fields: Fields) -> Fields:
        before = fields.get("predecessor")
        return {f"{prefix}_state_version": 1 if before is None or before.state == "none" else 2}

    return prepare


def _lane_of_trigger(fields: Fields) -> Fields:
    trigger, lane = fields.get("lane_trigger"), fields.get("lane")
    is_cost = isinstance(trigger, metering_works.ProviderCostTrigger) or getattr(lane, "kind", "") == "provider_cost"
    if not is_cost:
        return {}
    return {
        "lane_trigger": valid(metering_works.ProviderCostTrigger),
        "lane": valid(metering_works.LaneProviderCost),
    }


def _lane_of_outcome(fields: Fields) -> Fields:
    outcome = fields.get("outcome")
    is_cost = getattr(outcome, "kind", "") == "provider_cost"
    return {"lane": valid(metering_works.LaneProviderCost if is_cost else metering_works.LaneEligibility)}


def _lane_of_cause(fields: Fields) -> Fields:
    is_cost = getattr(fields.get("blocking_cause"), "kind", "") == "provider_cost_processing_conflict"
    return {"lane": valid(metering_works.LaneProviderCost if is_cost else metering_works.LaneEligibility)}


def _subject_of_purpose(fields: Fields) -> Fields:
    purpose = fields.get("purpose")
    kinds: dict[object, Any] = {
        "metering_route_validation": metering.SubjectRoute,
        "billing_catch_up_fence": metering.SubjectSettlementDimension,
        "post_finalization_transition": metering.SubjectSettlementDimension,
    }
    subject = valid(kinds.get(purpose, metering.SubjectAvailability))
    version = None if purpose == "metering_route_validation" else 1
    return {"subject": subject, "validated_quint": valid(quints.Validated, state_version=version)}


def _money(fields: Fields) -> Fields:
    dimensions = fields.get("dimensions") or [valid(finalization.FinalizedDimension)]
    settled = sum((Decimal(one.amount) for one in dimensions), Decimal(0))
    reserved = Decimal(fields.get("reserved_amount", "2"))
    return {"dimensions": dimensions, "settled_amount": str(settled), "released_amount": str(reserved - settled)}


def _identity(fields: Fields) -> Fields:
    before = fields.get("predecessor")
    return {"reconciliation_generation": 2 if isinstance(before, cases.CasePredecessorDirect) else 1}


def _step(fields: Fields) -> Fields:
    return {"to_revision": fields.get("from_revision", 1) + 1}


def _transition(fields: Fields) -> Fields:
    kind, exposure = fields.get("kind", "adjust"), fields.get("exposure")
    if "kind" not in fields and isinstance(exposure, transitions.ExposureResolved):
        kind = "resolve"
    exposures: dict[str, Any] = {
        "adjust": quints.Absent,
        "request_open": transitions.ExposureOpen,
        "resolve": transitions.ExposureResolved,
    }
    made: Fields = {"kind": kind, "exposure": valid(exposures[kind]), **_step(fields)}
    return {**made, "ledger_delta": "0"} if kind == "request_open" else made


def _late_result(fields: Fields) -> Fields:
    deltas = ("0", "0.5") if fields.get("action") == "waive" else ("0.5", "0")
    return {**_step(fields), "ledger_delta": deltas[0], "waived_delta": deltas[1]}


def _receipt_of_metering(fields: Fields) -> Fields:
    """A pending lane of the kind that the source enters."""
    from tests.kit.oceanway.lanes import metering_lane  # noqa: PLC0415 - that module is made of this one

    return metering_lane(fields)


_PREPARED: Final[Mapping[type[StrictModel], Callable[[Fields], Fields]]] = {
    gateway.GatewayEvidence: _evidence,
    gateway.GatewayEvidenceAvailabilitySnapshot: _version_after("gateway_evidence_availability_snapshot"),
    gateway.GatewayEvidenceAvailabilityPresent: lambda _: {"gateway_evidence_availability_snapshot_state_version": 1},
    metering_works.MeteringInputWork: _lane_of_trigger,
    metering_works.MeteringInputWorkAttemptFinished: _lane_of_outcome,
    metering_works.MeteringInputWorkAttemptBlocked: _lane_of_cause,
    metering_works.FinishedSuperseded: lambda _: {"superseded_by_work_generation": 2},
    finalization_works.OutcomeSuperseded: lambda _: {"superseded_by_work_generation": 2},
    catch_up_works.OutcomeSuperseded: lambda _: {"superseded_by_work_generation": 2},
    catch_up_works.OutcomeRebased: lambda _: {"successor_work_generation": 2},
    metering.CurrentValidationReceipt: _subject_of_purpose,
    finalization.FinalizedMoney: _money,
    cases.FinalizationReconciliationCaseIdentityReservation: _identity,
    cases.PendingFinalizationCaseSuccessor: lambda _: {"reconciliation_generation": 2},
    transitions.TransitionFields: _transition,
    transitions.LateSettlementExposure: lambda _: {"opening_revision": 2, "state_revision": 2},
    transitions.LateSettlementCommandResult: _late_result,
    transitions.LateSettlementGrant: lambda _: {"exp": 61},
    resolution.FinalizationReconciliationGrant: lambda _: {"exp": 61},
    CaseResolutionApplied: _step,
    LateSettlementCaseRequested: _step,
    transitions.RevisionStep: _step,
    OutcomeAlreadyObserved: lambda _: {
        "highest_observed_settlement_input": valid(quints.SettlementInputQuint, settlement_input_state_version=2)
    },
    EligibilityWaiting: lambda _: {},
    MeteringInputProcessorConsumerReceipt: _receipt_of_metering,
    catch_up.BillingSettlementCatchUpFence: lambda _: {},
}
"""What a class needs that its fields' names do not say; the first class that fits counts."""
