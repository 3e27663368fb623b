"""Execution, metering and operations in memory, as a reader: they answer from runs, or say what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic.alias_generators import to_camel

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.cases import FinalizationReconciliationCaseIdentityReservation
from oceanway.contracts.identity import quad_fields
from oceanway.contracts.reads import ReadOperation
from oceanway.reads.errors import OwnerUnreadable
from seapost.contracts.content_addressed import ContentAddressed
from tests.kit.oceanway.billing_finalization_runs import Run

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)

Document = dict[str, Any]

NOT_FOUND: Document = {"result": "not_found"}


@dataclass
class Peers:
    """The three owners.

    Attributes:
        unreadable: owners that cannot be asked now.
        unknown: names of reads that find nothing.
        identities: what operations reserved, by fence and generation.
        asked: name and arguments of every question.
        meanwhile: what happens once at the same time as a read, by name, after it was answered.
    """

    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    unreadable: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])
    identities: dict[tuple[str, int], Document] = field(default_factory=dict[tuple[str, int], Document])
    asked: list[tuple[str, Document]] = field(default_factory=list[tuple[str, Document]])
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict[str, Callable[[], object]])

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """See `Reader`."""
        if operation.audience in self.unreadable:
            raise OwnerUnreadable(operation.audience, operation.name, "the test says so")
        questions = [one.to_json() for one in arguments]
        self.asked += [(operation.name, question) for question in questions]
        answers = [operation.answer.decode({"answer": self._answer(operation.name, one)}) for one in questions]
        happening = self.meanwhile.pop(operation.name, None) if questions else None
        if happening is not None:
            _ = happening()
        return answers

    def questions(self, run: Run) -> list[str]:
        """Names of the questions that were asked about a run."""
        return [
            name
            for name, question in self.asked
            if run.run_id in {question.get("runId"), question.get("candidate", {}).get("runId")}
        ]

    def _answer(self, name: str, question: Document) -> Document:
        if name in self.unknown:
            return NOT_FOUND
        match name:
            case "readRunExecutionFinalizationForBilling":
                return _closure(self.runs[question["runId"]], question)
            case "readSettlementInputForBilling":
                return _input(self.runs[question["runId"]], question)
            case "reserveFinalizationReconciliationCaseIdentity":
                return self._reserve(question["candidate"])
            case _:
                raise AssertionError(name)

    def _reserve(self, candidate: Document) -> Document:
        """What operations does: one identity for each generation, for life (REF-39)."""
        key = candidate["billingFinalizationFenceId"], candidate["reconciliationGeneration"]
        first = self.identities.setdefault(key, candidate)
        if first is candidate:
            return {"result": "reserved", "reservation": candidate}
        digest = "finalizationCaseIdentityReservationDigest"
        if first[digest] != candidate[digest]:
            return {"result": "conflicting"}
        reservation = FinalizationReconciliationCaseIdentityReservation.decode(first)
        return {"result": "existing", "reservation": reservation.to_json()}


def _closure(run: Run, question: Document) -> Document:
    if run.run_conflict is not None:
        return _conflicting(run.run_conflict, "run_execution_finalization_conflict_fact")
    if question["runExecutionFinalizationDigest"] != run.closure.quad().digest:
        return NOT_FOUND
    return {
        "result": "found",
        "fact": run.closure.to_json(),
        "attemptSetManifest": run.attempt_set.to_json(),
    }


def _input(run: Run, question: Document) -> Document:
    if run.input_conflict is not None:
        return _conflicting(run.input_conflict, "settlement_input_conflict_fact")
    chain = run.inputs.get((question["executionAttemptId"], question["chargeDimensionKey"]), [])
    for snapshot in chain:
        if snapshot.quad().digest == question["settlementInputSnapshotDigest"]:
            return {"result": "found", "snapshot": snapshot.to_json()}
    return NOT_FOUND


def _conflicting(fact: ContentAddressed, prefix: str) -> Document:
    fields = quad_fields(prefix, fact.quad())
    return {"result": "conflicting", **{to_camel(name): value for name, value in fields.items()}}
