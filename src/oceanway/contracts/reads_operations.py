"""What operations answers: case identities, and its projection receipts (REF-39, RCP-04 to RCP-09)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.cases import CaseRequestFields, FinalizationReconciliationCaseIdentityReservation
from oceanway.contracts.quads_billing import (
    FinalizationCaseIdentityReservationQuad,
    OperationsProjectionAppliedReceiptQuad,
)
from oceanway.contracts.reads import Conflicting, EventBinding, NotFound, ReadOperation
from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from seapost.contracts.fields import Algorithm, Digest, Label, Name, Version


class CaseIdentityReservationQuestion(Contract):
    """The identity that billing wants to reserve; it names no work and no finalization (CASE-03)."""

    candidate: FinalizationReconciliationCaseIdentityReservation


class CaseIdentityReserved(Contract):
    """It is reserved now."""

    result: Literal["reserved"] = "reserved"
    reservation: FinalizationReconciliationCaseIdentityReservation


class CaseIdentityExisting(Contract):
    """It was reserved before; this is the first one."""

    result: Literal["existing"] = "existing"
    reservation: FinalizationReconciliationCaseIdentityReservation


class CaseIdentityReservationAnswer(Contract):
    """What became of the wish."""

    answer: Annotated[CaseIdentityReserved | CaseIdentityExisting | Conflicting, Field(discriminator="result")]


RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY: Final = ReadOperation(
    "reserveFinalizationReconciliationCaseIdentity",
    "operations",
    "finalization_case_identity",
    arguments=CaseIdentityReservationQuestion,
    answer=CaseIdentityReservationAnswer,
    callers=frozenset({"work.finalization"}),
)


class CaseIdentityQuestion(CaseRequestFields, FinalizationCaseIdentityReservationQuad):
    """One reserved identity, complete."""


class CaseIdentityFound(Contract):
    """The reservation."""

    result: Literal["found"] = "found"
    reservation: FinalizationReconciliationCaseIdentityReservation


class CaseIdentityAnswer(Contract):
    """What is known of a reserved identity."""

    answer: Annotated[CaseIdentityFound | NotFound | Conflicting, Field(discriminator="result")]


READ_FINALIZATION_RECONCILIATION_CASE_IDENTITY: Final = ReadOperation(
    "readFinalizationReconciliationCaseIdentity",
    "operations",
    "finalization_case_identity",
    arguments=CaseIdentityQuestion,
    answer=CaseIdentityAnswer,
    callers=frozenset({"work.finalization", "serve.billing"}),
)


class ProjectionReceiptQuestion(OperationsProjectionAppliedReceiptQuad, EventBinding):
    """One receipt, with what the member of the frozen definition expects of it (RCP-05, RCP-06)."""

    delivery_set_version: Label
    delivery_set_definition_schema_version: Version
    delivery_set_definition_digest_algorithm_version: Algorithm
    delivery_set_definition_digest: Digest
    destination: Literal["core_operations"]
    consumer_name: Literal["operations_projector"]
    projection_name: Name
    projection_version: Version


class ProjectionReceiptFound(Contract):
    """The receipt."""

    result: Literal["found"] = "found"
    receipt: OperationsProjectionAppliedReceipt


class ProjectionReceiptAnswer(Contract):
    """What is known of a receipt."""

    answer: Annotated[ProjectionReceiptFound | NotFound | Conflicting, Field(discriminator="result")]


READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT: Final = ReadOperation(
    "readOperationsProjectionAppliedReceipt",
    "operations",
    "receipt_verification",
    arguments=ProjectionReceiptQuestion,
    answer=ProjectionReceiptAnswer,
    callers=frozenset({"dispatch.core", "dispatch.billing"}),
)
