"""The chain of steps behind the resolution of a late case, asked of its owner and verified (CASE-28, CASE-29).

A case is named by the revision that opened it, so the question can be complete before anything else of the case is
known: from the state before the opening to the step that the resolution rests on.
"""

from __future__ import annotations

from typing import Final

from oceanway.contracts.events import CaseResolutionApplied
from oceanway.contracts.events.settlement import OwnerTransition
from oceanway.contracts.facts.settlement import EconomicFields
from oceanway.contracts.facts.transitions import late_settlement_case_ref
from oceanway.contracts.identity import Quad, quad_fields, quad_of
from oceanway.contracts.reads_billing import (
    ExposureChainFound,
    ExposureChainQuestion,
    OwnerFactLateCommandResult,
    OwnerFactTransition,
    StepLateCommandResult,
    StepTransition,
)
from oceanway.operations.refusals import refuse

STEPS_MAX: Final = 10_000
"""Steps that a dimension may have; far above any real one, so that a wrong case reference is not searched for ever."""

_SUBJECT: Final = tuple(EconomicFields.model_fields)


def question_of(event: CaseResolutionApplied) -> ExposureChainQuestion:
    """What has to be asked before this resolution may be believed.

    Raises:
        Reject: no revision before the resolution can have opened this case.
    """
    quad = owner_fact(event)
    return ExposureChainQuestion(
        **{name: getattr(event, name) for name in _SUBJECT},
        case_ref=event.case_ref,
        owner_fact=OwnerFactTransition(**quad_fields("settlement_transition", quad))
        if isinstance(event.owner, OwnerTransition)
        else OwnerFactLateCommandResult(**quad_fields("late_settlement_command_result", quad)),
        from_revision=opening_revision(event) - 1,
        to_revision=event.to_revision,
    )


def owner_fact(event: CaseResolutionApplied) -> Quad:
    """The identity of the transition or late result that ended the exposure."""
    if isinstance(event.owner, OwnerTransition):
        return quad_of(event.owner, "settlement_transition")
    return quad_of(event.owner, "late_settlement_command_result")


def opening_revision(event: CaseResolutionApplied) -> int:
    """The revision that opened the case of a resolution."""
    for revision in range(event.from_revision, max(0, event.from_revision - STEPS_MAX), -1):
        if late_settlement_case_ref(event.dimension_id, revision) == event.case_ref:
            return revision
    raise refuse("no earlier revision can have opened this case")


def verify(event: CaseResolutionApplied, asked: ExposureChainQuestion, found: ExposureChainFound) -> None:
    """Require the owner's chain to lead from the opening of this case to this resolution.

    Raises:
        Reject: it does not, in any item.
    """
    steps = found.chain
    first, last = steps[0].step(), steps[-1].step()
    subject = {name: getattr(event, name) for name in _SUBJECT}
    opens = isinstance(steps[0], StepTransition) and steps[0].transition.kind == "request_open"
    expected = (event.dimension_id, asked.from_revision, asked.to_revision, owner_fact(event))
    exposure = steps[-1].exposure
    fits = (
        opens
        and (first[0], first[1], last[2], last[3]) == expected
        and exposure is not None
        and exposure.quad() == quad_of(event, "late_settlement_exposure")
        and all(_is_about(one, subject, event.case_ref) for one in steps)
    )
    if not fits:
        raise refuse("the owner's chain does not lead to this resolution")


def _is_about(step: StepTransition | StepLateCommandResult, subject: dict[str, object], case_ref: str) -> bool:
    fact = step.transition if isinstance(step, StepTransition) else step.command_result
    exposure = step.exposure
    return {name: getattr(fact, name) for name in _SUBJECT} == subject and (
        exposure is None or exposure.case_ref == case_ref
    )
