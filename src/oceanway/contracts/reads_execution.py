"""What execution answers: manifests, eligibility facts and closures (REF-18, REF-19, REF-38; RCP-15, RCP-18)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.execution import (
    AttemptExecutionManifest,
    ExecutionEligibilityFact,
    RunAttemptSetManifest,
    RunExecutionFinalizationFact,
)
from oceanway.contracts.facts.gateway import EvidenceChain
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    ExecutionEligibilityConflictFactQuad,
    ExecutionEligibilityFactQuad,
    RunExecutionFinalizationConflictFactQuad,
    RunExecutionFinalizationQuad,
)
from oceanway.contracts.quints import CurrentAvailabilityQuint
from oceanway.contracts.reads import Conflicting, EventBinding, NotFound, ReadOperation
from oceanway.contracts.subject import AttemptFields, RunFields
from seapost.contracts.fields import Identifier

_METERING: Final = frozenset({"serve.metering", "work.metering"})


class ManifestForEligibility(EventBinding, AttemptFields, AttemptExecutionManifestQuad, ExecutionEligibilityFactQuad):
    """Asked for an eligibility event: the manifest of its attempt, or its fact."""


class ManifestForAvailability(EventBinding, EvidenceChain, AttemptExecutionManifestQuad, CurrentAvailabilityQuint):
    """Asked for an availability event: the manifest of its attempt."""


class ManifestFound(Contract):
    """The manifest."""

    result: Literal["found"] = "found"
    manifest: AttemptExecutionManifest


class ManifestAnswer(Contract):
    """What is known of a manifest."""

    answer: Annotated[ManifestFound | NotFound | Conflicting, Field(discriminator="result")]


READ_MANIFEST_FOR_ELIGIBILITY: Final = ReadOperation(
    "readAttemptExecutionManifest",
    "execution",
    "metering_execution_eligibility",
    arguments=ManifestForEligibility,
    answer=ManifestAnswer,
    callers=_METERING,
)
READ_MANIFEST_FOR_AVAILABILITY: Final = ReadOperation(
    "readAttemptExecutionManifest",
    "execution",
    "metering_gateway_availability",
    arguments=ManifestForAvailability,
    answer=ManifestAnswer,
    callers=_METERING,
)


class EligibilityFactQuestion(AttemptExecutionManifestQuad, ExecutionEligibilityFactQuad):
    """Asked by a work: the fact that its trigger names, of this attempt."""

    execution_attempt_id: Identifier


class EligibilityFactFound(Contract):
    """The fact."""

    result: Literal["found"] = "found"
    fact: ExecutionEligibilityFact


class EligibilityFactConflicting(ExecutionEligibilityConflictFactQuad):
    """Two claims exclude each other, as this fact says."""

    result: Literal["conflicting"] = "conflicting"


class EligibilityFactAnswer(Contract):
    """What is known of an eligibility fact."""

    answer: Annotated[EligibilityFactFound | NotFound | EligibilityFactConflicting, Field(discriminator="result")]


READ_EXECUTION_ELIGIBILITY_FACT: Final = ReadOperation(
    "readExecutionEligibilityFact",
    "execution",
    "metering_execution_eligibility",
    arguments=EligibilityFactQuestion,
    answer=EligibilityFactAnswer,
    callers=_METERING,
)


class RunFinalizationQuestion(RunFields, RunExecutionFinalizationQuad):
    """The closure that billing was told of. `operation_id`: the finalization, or the closure for the consumer."""

    operation_id: Identifier


class RunFinalizationFound(Contract):
    """The closure with its complete attempt set."""

    result: Literal["found"] = "found"
    fact: RunExecutionFinalizationFact
    attempt_set_manifest: RunAttemptSetManifest


class RunFinalizationConflicting(RunExecutionFinalizationConflictFactQuad):
    """Two claims exclude each other, as this fact says; never a case (FIN-06, FIN-07)."""

    result: Literal["conflicting"] = "conflicting"


class RunFinalizationAnswer(Contract):
    """What is known of a closure."""

    answer: Annotated[RunFinalizationFound | NotFound | RunFinalizationConflicting, Field(discriminator="result")]


READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING: Final = ReadOperation(
    "readRunExecutionFinalizationForBilling",
    "execution",
    "billing_finalization",
    arguments=RunFinalizationQuestion,
    answer=RunFinalizationAnswer,
    callers=frozenset({"serve.billing", "work.finalization"}),
)
