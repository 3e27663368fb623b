"""The owner reads of execution (REF-18, REF-19, REF-38): complete identities in, stored documents out.

A question repeats what its caller was told. A stored fact answers it only when every field that both have is the same;
an open conflict is answered with the quad of its fact and nothing else (FIN-06, SEC-16).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from oceanway.contracts.events.execution import AttemptEligibilityFinalized
from oceanway.contracts.facts.execution import (
    ExecutionEligibilityConflictFact,
    RunExecutionFinalizationConflictFact,
)
from oceanway.contracts.identity import ALGORITHM, quad_fields
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    ExecutionEligibilityFactQuad,
    RunExecutionFinalizationQuad,
)
from oceanway.contracts.reads import Conflicting, NotFound
from oceanway.contracts.reads_execution import (
    READ_EXECUTION_ELIGIBILITY_FACT,
    READ_MANIFEST_FOR_AVAILABILITY,
    READ_MANIFEST_FOR_ELIGIBILITY,
    READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING,
    EligibilityFactAnswer,
    EligibilityFactConflicting,
    EligibilityFactQuestion,
    ManifestAnswer,
    ManifestForAvailability,
    ManifestForEligibility,
    RunFinalizationAnswer,
    RunFinalizationConflicting,
    RunFinalizationQuestion,
)
from oceanway.contracts.subject import AttemptFields, RunFields
from oceanway.execution import store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oceanway.reads.call import Caller
    from oceanway.reads.server import Serving
    from seapost.contracts.contract import Contract
    from seapost.database.pool import SyncPool

_MANIFEST_UNKNOWN: Final = ManifestAnswer(answer=NotFound()).canonical()
_MANIFEST_OTHER: Final = ManifestAnswer(answer=Conflicting()).canonical()
_FACT_UNKNOWN: Final = EligibilityFactAnswer(answer=NotFound()).canonical()
_CLOSURE_UNKNOWN: Final = RunFinalizationAnswer(answer=NotFound()).canonical()


def register(serving: Serving, pool: SyncPool) -> None:
    """Serve the reads of execution from these connections."""
    reads = _Reads(pool)
    serving.register(READ_MANIFEST_FOR_ELIGIBILITY, reads.manifest_for_eligibility)
    serving.register(READ_MANIFEST_FOR_AVAILABILITY, reads.manifest_for_availability)
    serving.register(READ_EXECUTION_ELIGIBILITY_FACT, reads.eligibility_fact)
    serving.register(READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, reads.finalization)


class _Reads:
    """The functions behind the operations, on one pool."""

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool

    def manifest_for_eligibility(
        self, _caller: Caller, questions: Sequence[ManifestForEligibility]
    ) -> list[ManifestAnswer | bytes]:
        """The manifest of an attempt whose end an event announced (RCP-15)."""
        with self._pool.connection() as connection:
            rows = store.eligibility(connection, attempts=[one.execution_attempt_id for one in questions])
        return [_manifest_for_eligibility(question, row) for question, row in zip(questions, rows, strict=True)]

    def manifest_for_availability(
        self, _caller: Caller, questions: Sequence[ManifestForAvailability]
    ) -> list[ManifestAnswer | bytes]:
        """The manifest of an attempt about whose evidence the gateway announced something (RCP-18, RCP-21)."""
        with self._pool.connection() as connection:
            rows = store.manifests(connection, attempts=[one.execution_attempt_id for one in questions])
        return [_manifest_for_availability(question, row) for question, row in zip(questions, rows, strict=True)]

    def eligibility_fact(
        self, _caller: Caller, questions: Sequence[EligibilityFactQuestion]
    ) -> list[EligibilityFactAnswer | bytes]:
        """How an attempt ended, as the trigger of a work names it (REF-19)."""
        with self._pool.connection() as connection:
            rows = store.eligibility(connection, attempts=[one.execution_attempt_id for one in questions])
        return [_eligibility_fact(question, row) for question, row in zip(questions, rows, strict=True)]

    def finalization(
        self, _caller: Caller, questions: Sequence[RunFinalizationQuestion]
    ) -> list[RunFinalizationAnswer | bytes]:
        """The closure that billing was told of, with its complete attempt set (REF-38)."""
        with self._pool.connection() as connection:
            rows = store.finalizations(connection, runs=[one.run_id for one in questions])
        return [_finalization(question, row) for question, row in zip(questions, rows, strict=True)]


def _manifest_for_eligibility(question: ManifestForEligibility, row: store.EligibilityRow) -> bytes:
    document, fact, event_id, sha256, _ = row
    if document is None or fact is None:
        return _MANIFEST_UNKNOWN
    announced = (
        str(event_id),
        AttemptEligibilityFinalized.event_type,
        AttemptEligibilityFinalized.event_schema_version,
        ALGORITHM,
        sha256,
    )
    asked = (
        question.event_id,
        question.event_type,
        question.event_schema_version,
        question.event_envelope_digest_algorithm_version,
        question.event_envelope_sha256,
    )
    same = (
        asked == announced
        and _repeats(question, document, AttemptFields, AttemptExecutionManifestQuad)
        and _repeats(question, fact, ExecutionEligibilityFactQuad)
    )
    return _found(manifest=document) if same else _MANIFEST_OTHER


def _manifest_for_availability(question: ManifestForAvailability, document: bytes | None) -> bytes:
    if document is None:
        return _MANIFEST_UNKNOWN
    binding: Mapping[str, Any] = json.loads(document)["gatewayBinding"]
    same = binding.get("gatewayDeploymentId") == question.gateway_deployment_id and _repeats(
        question, document, AttemptExecutionManifestQuad
    )
    return _found(manifest=document) if same else _MANIFEST_OTHER


def _eligibility_fact(question: EligibilityFactQuestion, row: store.EligibilityRow) -> EligibilityFactAnswer | bytes:
    _, fact, _, _, conflict = row
    if conflict is not None:
        quad = ExecutionEligibilityConflictFact.decode(conflict).quad()
        return EligibilityFactAnswer(
            answer=EligibilityFactConflicting(**quad_fields("execution_eligibility_conflict_fact", quad))
        )
    if fact is None or not _repeats(question, fact, EligibilityFactQuestion):
        return _FACT_UNKNOWN
    return _found(fact=fact)


def _finalization(question: RunFinalizationQuestion, row: store.FinalizationRow) -> RunFinalizationAnswer | bytes:
    fact, attempt_set, conflict = row
    if conflict is not None:
        quad = RunExecutionFinalizationConflictFact.decode(conflict).quad()
        return RunFinalizationAnswer(
            answer=RunFinalizationConflicting(**quad_fields("run_execution_finalization_conflict_fact", quad))
        )
    if fact is None or attempt_set is None or not _repeats(question, fact, RunFields, RunExecutionFinalizationQuad):
        return _CLOSURE_UNKNOWN
    return _found(attemptSetManifest=attempt_set, fact=fact)


def _repeats(question: Contract, document: bytes, *parts: type[Contract]) -> bool:
    """Whether a question says of these parts exactly what the stored document says."""
    stored, asked = json.loads(document), question.to_json()
    names = (to_camel(name) for part in parts for name in part.model_fields)
    return all(asked.get(name) == stored.get(name) for name in names)


def _found(**documents: bytes) -> bytes:
    """The answer `found` around stored documents, by wire name in canonical order; `result` sorts last."""
    members = b",".join(b'"%s":%s' % (name.encode(), document) for name, document in documents.items())
    return b'{"answer":{%s,"result":"found"}}' % members
