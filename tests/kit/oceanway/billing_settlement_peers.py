"""Metering, execution and operations in memory, as billing reads them: they answer from runs, or as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from oceanway.contracts.facts.metering import CurrentValidationReceipt, SubjectSettlementDimension
from oceanway.contracts.facts.settlement import SettlementInputConflictFact
from oceanway.contracts.identity import det, quad_fields
from oceanway.contracts.quints import Validated
from oceanway.contracts.reads import NotFound, ReadOperation
from oceanway.contracts.reads_execution import RunFinalizationAnswer, RunFinalizationFound
from oceanway.contracts.reads_metering import (
    SettlementConflict,
    SettlementInputAnswer,
    SettlementInputConflicting,
    SettlementInputCurrent,
    SettlementInputFound,
    SettlementInputSuperseded,
    SettlementInputValidationAnswer,
)
from oceanway.contracts.reads_operations import CaseIdentityReservationAnswer, CaseIdentityReserved
from oceanway.reads.errors import OwnerUnreadable
from seapost.contracts.contract import Contract
from tests.kit.oceanway.billing_settlement_facts import NOW, Run

_PLACE = (
    "tenant_kind",
    "tenant_id",
    "workspace_id",
    "project_id",
    "billing_account_id",
    "billing_reservation_id",
    "run_id",
    "run_step_id",
    "execution_attempt_id",
    "charge_dimension_key",
)
_QUINT = (
    "settlement_input_snapshot_ref",
    "settlement_input_snapshot_schema_version",
    "settlement_input_snapshot_digest_algorithm_version",
    "settlement_input_snapshot_digest",
    "settlement_input_state_version",
)


@dataclass
class Peers:
    """The other owners.

    Attributes:
        runs: what they know, by run.
        unreadable: whether they cannot be asked now.
        conflicting: settlement dimensions about which metering holds two claims.
        purpose: what receipts say instead of the purpose asked for, where a test wants a wrong one.
        before: called with the purpose before each batch is answered.
        asked: purpose and argument of every question.
    """

    runs: dict[str, Run] = field(default_factory=dict)
    unreadable: bool = False
    conflicting: set[str] = field(default_factory=set)
    purpose: str | None = None
    before: Callable[[str], None] | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, run: Run) -> Run:
        """Know a run."""
        self.runs[run.run] = run
        return run

    def call(self, operation: ReadOperation[Any, Any], arguments: Sequence[Any]) -> list[Any]:
        """See `Reader`."""
        if self.before is not None:
            self.before(operation.purpose)
        if self.unreadable:
            raise OwnerUnreadable(operation.audience, operation.name, "the test says so")
        self.asked.extend((operation.purpose, one) for one in arguments)
        return [operation.answer.decode(self._answer(operation.purpose, one).canonical()) for one in arguments]

    def _answer(self, purpose: str, question: Any) -> Contract:  # noqa: ANN401 - one of three contracts
        run = self.runs.get(getattr(question, "run_id", ""))
        match purpose:
            case "billing_finalization":
                if run is None:
                    return RunFinalizationAnswer(answer=NotFound())
                found = RunFinalizationFound(fact=run.closure(), attempt_set_manifest=run.attempts())
                return RunFinalizationAnswer(answer=found)
            case "finalization_case_identity":
                reserved = CaseIdentityReserved(reservation=question.candidate)
                return CaseIdentityReservationAnswer(answer=reserved)
            case "billing_settlement_input":
                return self._snapshot(run, question)
            case _:
                return self._validation(run, purpose, question)

    def _snapshot(self, run: Run | None, question: Any) -> SettlementInputAnswer:  # noqa: ANN401 - see above
        if question.settlement_dimension_id in self.conflicting:
            quad = quad_fields("settlement_input_conflict_fact", conflict_fact(question).quad())
            return SettlementInputAnswer(answer=SettlementInputConflicting(**quad))
        line = [] if run is None else run.snapshots.get(question.charge_dimension_key, [])
        for one in line:
            if one.settlement_input_snapshot_ref == question.settlement_input_snapshot_ref:
                return SettlementInputAnswer(answer=SettlementInputFound(snapshot=one))
        return SettlementInputAnswer(answer=NotFound())

    def _validation(self, run: Run | None, purpose: str, question: Any) -> SettlementInputValidationAnswer:  # noqa: ANN401 - see above
        if question.settlement_dimension_id in self.conflicting:
            return SettlementInputValidationAnswer(answer=SettlementConflict(conflict_fact=conflict_fact(question)))
        line = [] if run is None else run.snapshots.get(question.charge_dimension_key, [])
        if not line:
            return SettlementInputValidationAnswer(answer=NotFound())
        current = line[-1]
        if current.settlement_input_snapshot_ref != question.settlement_input_snapshot_ref:
            newer = SettlementInputSuperseded(**{name: getattr(current, name) for name in _QUINT})
            return SettlementInputValidationAnswer(answer=newer)
        receipt = current_receipt(question, self.purpose or purpose)
        return SettlementInputValidationAnswer(answer=SettlementInputCurrent(receipt=receipt))


def current_receipt(question: Any, purpose: str) -> CurrentValidationReceipt:  # noqa: ANN401 - a question or a work's
    """Metering's word that an input is current, for one operation."""
    subject = SubjectSettlementDimension(
        **{name: getattr(question, name) for name in _PLACE}, settlement_dimension_id=question.settlement_dimension_id
    )
    return CurrentValidationReceipt.assemble(
        current_validation_receipt_ref=det("current_validation_receipt", purpose, question.validation_operation_id),
        purpose=cast("Any", purpose),
        validation_operation_id=question.validation_operation_id,
        subject=subject,
        validated_quint=Validated(
            ref=question.settlement_input_snapshot_ref,
            schema_version=question.settlement_input_snapshot_schema_version,
            digest_algorithm_version=question.settlement_input_snapshot_digest_algorithm_version,
            digest=question.settlement_input_snapshot_digest,
            state_version=question.settlement_input_state_version,
        ),
        result="current",
        issued_at=NOW,
    )


def conflict_fact(question: Any) -> SettlementInputConflictFact:  # noqa: ANN401 - one of two questions
    """Metering's word that two claims about an input exclude each other."""
    names = (*_PLACE, "settlement_dimension_id", *_QUINT)
    return SettlementInputConflictFact.assemble(
        settlement_input_conflict_fact_ref=det("settlement_input_conflict", question.settlement_dimension_id),
        **{name: getattr(question, name) for name in names},
        conflict_kind="content",
        conflicting_candidate_digest_algorithm_version="jcs-sha256-v1",
        conflicting_candidate_digest="b" * 64,
        reason_code="other_candidate_for_identity",
        detected_at=NOW,
    )
