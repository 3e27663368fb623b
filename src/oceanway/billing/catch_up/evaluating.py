"""What becomes of leased catch-up works: asks metering in batches, decides, and makes the documents; writes nothing.

| The work's target | Asked under | Answer | End |
|---|---|---|---|
| is what was evaluated last | `billing_catch_up_fence`, the work's own operation | current | caught up (CAT-20) |
| is newer | `post_finalization_transition`, the operation of this revision | current | evaluated (CAT-19) |
| either | | conflicting | blocked with metering's own fact (CAT-12) |
| either | | superseded, not found, unreadable | nothing: tried again; a newer event is on its way |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from oceanway.billing.catch_up.decide import QUINT
from oceanway.billing.catch_up.works import (
    PLACE,
    SUBJECT,
    Attempt,
    caught_up_finish,
    present,
    rebased_finish,
    successor_work,
)
from oceanway.billing.ledger import price_of
from oceanway.billing.store_settlement import ClaimedRow, Evaluated
from oceanway.billing.transitions.documents import Dimension, transition_step, validation_for
from oceanway.billing.transitions.evaluate import evaluate
from oceanway.contracts.facts.settlement import SettlementEconomicIdentity
from oceanway.contracts.identity import det, quad_fields
from oceanway.contracts.reads_metering import (
    READ_SETTLEMENT_INPUT_FOR_BILLING,
    VALIDATE_FOR_CATCH_UP_FENCE,
    VALIDATE_FOR_TRANSITION,
    SettlementConflict,
    SettlementInputCurrent,
    SettlementInputFound,
    SettlementInputQuestion,
    SettlementInputValidation,
    SettlementInputValidationAnswer,
)
from oceanway.contracts.works.catch_up import (
    BillingSettlementCatchUpWork,
    BillingSettlementCatchUpWorkAttemptBlocked,
    CauseSettlementInputOwnerConflict,
)
from oceanway.reads.errors import OwnerUnreadable, ReadRefused

if TYPE_CHECKING:
    from oceanway.billing.transitions.documents import Validation
    from oceanway.contracts.facts.metering import CurrentValidationReceipt
    from oceanway.contracts.facts.settlement import SettlementInputConflictFact, SettlementInputSnapshot
    from oceanway.contracts.reads import ReadOperation
    from oceanway.reads.client import Reader

_IDENTITY: Final = (*SUBJECT.values(), *PLACE.values())


@dataclass(frozen=True, slots=True)
class LeasedWork:
    """One leased work.

    Attributes:
        dimension: as it was when the work was leased; the commit compares it again.
        validation: of the evaluation that starts from this state.
    """

    attempt: Attempt
    fence_revision: int
    dimension: Dimension
    validation: Validation
    unit_price: Decimal | None
    available: Decimal

    @classmethod
    def of(cls, row: ClaimedRow) -> LeasedWork:
        """Read what was claimed."""
        work = BillingSettlementCatchUpWork.decode(row.work)
        economic = SettlementEconomicIdentity.decode(dict(row.economic_identity))
        identity = {name: getattr(work, name) for name in _IDENTITY}
        dimension = Dimension.of(row.dimension, identity, economic)
        return cls(
            attempt=Attempt(work, row.attempt_number, row.fencing_token),
            fence_revision=row.fence_revision,
            dimension=dimension,
            validation=validation_for(dimension, work.basis.target_input),
            unit_price=None if row.unit_price is None else Decimal(row.unit_price),
            available=Decimal(row.available),
        )

    @property
    def work_ref(self) -> str:
        """The work."""
        return self.attempt.work.billing_settlement_catch_up_work_ref

    @property
    def is_evaluated(self) -> bool:
        """Whether the target is what the dimension's amounts rest on already."""
        target = self.attempt.work.basis.target_input
        return self.dimension.last_evaluated == present(target).to_json()


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Nothing newer exists (TX-31)."""

    work: LeasedWork
    finish: bytes
    receipt: bytes

    @property
    def fencing_token(self) -> int:
        """Of the lease."""
        return self.work.attempt.fencing_token

    @property
    def expected_revision(self) -> int:
        """Of the catch-up fence."""
        return self.work.fence_revision


@dataclass(frozen=True, slots=True)
class Rebased:
    """The target was evaluated, and its successor is to verify that (TX-11, TX-30)."""

    work: LeasedWork
    evaluated: Evaluated


@dataclass(frozen=True, slots=True)
class Blocked:
    """Metering contradicts itself (TX-29)."""

    work: LeasedWork
    conflict: bytes
    blocked: bytes


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing is written; the work is tried again after a pause."""

    work: LeasedWork
    reason: str


Ending = CaughtUp | Rebased | Blocked | Later


class Evaluator:
    """Decides about leased works; it never writes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def end(self, works: Sequence[LeasedWork], now: str) -> list[Ending]:
        """What becomes of each work; the order is not kept. `now` is the moment of the documents."""
        evaluated = [work for work in works if work.is_evaluated]
        others = [work for work in works if not work.is_evaluated]
        return [*self._verify(evaluated, now), *self._evaluate(others, now)]

    def _verify(self, works: Sequence[LeasedWork], now: str) -> Iterable[Ending]:
        questions = [_validation(work, work.attempt.work.billing_catch_up_validation_operation_id) for work in works]
        for work, answer in self._ask(VALIDATE_FOR_CATCH_UP_FENCE, works, questions):
            operation = work.attempt.work.billing_catch_up_validation_operation_id
            receipt = _current(work, answer, "billing_catch_up_fence", operation, now)
            if isinstance(receipt, Later | Blocked):
                yield receipt
                continue
            finish = caught_up_finish(work.attempt, receipt.quad(), now)
            yield CaughtUp(work, finish.canonical(), receipt.canonical())

    def _evaluate(self, works: Sequence[LeasedWork], now: str) -> Iterable[Ending]:
        endings: list[Ending] = []
        current: list[tuple[LeasedWork, CurrentValidationReceipt]] = []
        questions = [_validation(work, work.validation.operation_id) for work in works]
        for work, answer in self._ask(VALIDATE_FOR_TRANSITION, works, questions):
            receipt = _current(work, answer, "post_finalization_transition", work.validation.operation_id, now)
            if isinstance(receipt, Later | Blocked):
                endings.append(receipt)
            else:
                current.append((work, receipt))
        inputs = [_question(work) for work, _ in current]
        leased = [work for work, _ in current]
        answers = self._ask(READ_SETTLEMENT_INPUT_FOR_BILLING, leased, inputs)
        for (_, receipt), (work, answer) in zip(current, answers, strict=True):
            found = None if isinstance(answer, Later) else answer.answer
            if not isinstance(found, SettlementInputFound) or not _is_asked(work, found.snapshot):
                endings.append(answer if isinstance(answer, Later) else Later(work, "input_not_found"))
            elif work.unit_price is None:
                endings.append(Later(work, "price_missing"))
            else:
                endings.append(_rebased(work, work.unit_price, found.snapshot, receipt, now))
        return endings

    def _ask(
        self, operation: ReadOperation[Any, Any], works: Sequence[LeasedWork], questions: Sequence[Any]
    ) -> list[tuple[LeasedWork, Any]]:
        """The answers with their works; a `Later` in place of each when the owner cannot be read."""
        if not works:
            return []
        try:
            answers: list[Any] = self._reader.call(operation, questions)
        except (OwnerUnreadable, ReadRefused):
            answers = [Later(work, "owner_unreadable") for work in works]
        return list(zip(works, answers, strict=True))


def _current(
    work: LeasedWork, answer: SettlementInputValidationAnswer | Later, purpose: str, operation_id: str, now: str
) -> CurrentValidationReceipt | Later | Blocked:
    """The receipt, if it is for this purpose, operation and input; else the work's end."""
    if isinstance(answer, Later):
        return answer
    match answer.answer:
        case SettlementInputCurrent(receipt=receipt):
            target = work.attempt.work.basis.target_input
            validated = receipt.validated_quint
            stated = (
                receipt.purpose,
                receipt.validation_operation_id,
                getattr(receipt.subject, "settlement_dimension_id", None),
                (
                    validated.ref,
                    validated.schema_version,
                    validated.digest_algorithm_version,
                    validated.digest,
                    validated.state_version,
                ),
            )
            wanted = tuple(getattr(target, name) for name in QUINT.values())
            if stated != (purpose, operation_id, work.dimension.dimension_id, wanted):
                return Later(work, "receipt_differs")
            return receipt
        case SettlementConflict(conflict_fact=fact):
            return _blocked(work, fact, now)
        case other:
            return Later(work, f"input_{other.result}")


def _blocked(work: LeasedWork, fact: SettlementInputConflictFact, now: str) -> Blocked | Later:
    if fact.settlement_dimension_id != work.dimension.dimension_id:
        return Later(work, "conflict_differs")
    attempt = work.attempt
    blocked = BillingSettlementCatchUpWorkAttemptBlocked.assemble(
        billing_settlement_catch_up_work_attempt_blocked_ref=det(
            "billing_settlement_catch_up_work_attempt_blocked", work.work_ref, attempt.attempt_number
        ),
        **attempt.fields(),
        blocking_cause=CauseSettlementInputOwnerConflict(**quad_fields("settlement_input_conflict_fact", fact.quad())),
        blocked_at=now,
    )
    return Blocked(work, fact.canonical(), blocked.canonical())


def _rebased(
    work: LeasedWork,
    unit_price: Decimal,
    snapshot: SettlementInputSnapshot,
    receipt: CurrentValidationReceipt,
    now: str,
) -> Rebased:
    """Evaluate the input, and order its verification in the same breath (CAT-19)."""
    dimension, attempt = work.dimension, work.attempt
    target = price_of(Decimal(snapshot.quantity), unit_price, snapshot.settlement_economic_identity.currency)
    change = evaluate(dimension.money, target, work.available)
    step = None if change is None else transition_step(dimension, change, work.validation, receipt, now=now)
    revision = dimension.revision if step is None else dimension.revision + 1
    successor = successor_work(attempt.work, state_revision=revision, created_at=now)
    finish = rebased_finish(attempt, successor, now, is_changed=step is not None)
    return Rebased(
        work,
        Evaluated(
            finish=finish.canonical(),
            successor=successor.canonical(),
            receipt=receipt.canonical(),
            fencing_token=attempt.fencing_token,
            expected_revision=work.fence_revision,
            expected_state_revision=dimension.revision,
            transition=None if step is None else step.transition.canonical(),
            consumption=None if step is None else step.consumption.canonical(),
            exposure=None if step is None or step.exposure is None else step.exposure.canonical(),
            envelopes=() if step is None else step.envelopes,
        ),
    )


def _validation(work: LeasedWork, operation_id: str) -> SettlementInputValidation:
    return SettlementInputValidation(**_asked(work), validation_operation_id=operation_id)


def _question(work: LeasedWork) -> SettlementInputQuestion:
    return SettlementInputQuestion(**_asked(work), operation_id=work.validation.operation_id)


def _asked(work: LeasedWork) -> dict[str, Any]:
    """The dimension and the input that every question names."""
    order = work.attempt.work
    return {
        **{name: getattr(order, name) for name in _IDENTITY},
        "settlement_dimension_id": order.settlement_dimension_id,
        **{name: getattr(order.basis.target_input, name) for name in QUINT.values()},
    }


def _is_asked(work: LeasedWork, snapshot: SettlementInputSnapshot) -> bool:
    """Whether a snapshot is the work's target, of the same dimension with the same economic meaning."""
    target = work.attempt.work.basis.target_input
    return all(getattr(snapshot, name) == getattr(target, name) for name in QUINT.values()) and all(
        getattr(snapshot, name) == value for name, value in work.dimension.identity.items()
    )
