"""What metering answers: settlement inputs, whether they are current, and its receipts (REF-48, RCP-57)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.metering import CurrentValidationReceipt
from oceanway.contracts.facts.settlement import (
    SettlementDimensionFields,
    SettlementInputConflictFact,
    SettlementInputSnapshot,
)
from oceanway.contracts.quads import SettlementInputConflictFactQuad
from oceanway.contracts.quads_billing import MeteringInputProcessorConsumerReceiptQuad
from oceanway.contracts.quints import SettlementInputQuint
from oceanway.contracts.reads import Conflicting, NotFound, ReadOperation
from oceanway.contracts.receipts.metering import (
    MeteringInputProcessorConsumerReceipt,
    SourceExecutionEligibility,
    SourceGatewayAvailability,
)
from seapost.contracts.fields import Algorithm, Digest, EventId, Identifier


class SettlementInputQuestion(SettlementDimensionFields, SettlementInputQuint):
    """One settlement input of one dimension, asked for one operation of billing."""

    operation_id: Identifier


class SettlementInputFound(Contract):
    """The settlement input."""

    result: Literal["found"] = "found"
    snapshot: SettlementInputSnapshot


class SettlementInputConflicting(SettlementInputConflictFactQuad):
    """Two claims exclude each other, as this fact says."""

    result: Literal["conflicting"] = "conflicting"


class SettlementInputAnswer(Contract):
    """What is known of a settlement input."""

    answer: Annotated[SettlementInputFound | NotFound | SettlementInputConflicting, Field(discriminator="result")]


READ_SETTLEMENT_INPUT_FOR_BILLING: Final = ReadOperation(
    "readSettlementInputForBilling",
    "metering",
    "billing_settlement_input",
    arguments=SettlementInputQuestion,
    answer=SettlementInputAnswer,
    callers=frozenset({"work.finalization", "work.catch-up"}),
)


class SettlementInputValidation(SettlementDimensionFields, SettlementInputQuint):
    """Whether this is the current settlement input of the dimension, asked for one operation."""

    validation_operation_id: Identifier


class SettlementInputCurrent(Contract):
    """It is current, and this receipt says so to the one operation."""

    result: Literal["current"] = "current"
    receipt: CurrentValidationReceipt


class SettlementInputSuperseded(SettlementInputQuint):
    """There is a newer one; its event is on its way."""

    result: Literal["superseded"] = "superseded"


class SettlementConflict(Contract):
    """The conflict fact itself, for billing keeps it with its Blocked record (AMB-30)."""

    result: Literal["conflicting"] = "conflicting"
    conflict_fact: SettlementInputConflictFact


class SettlementInputValidationAnswer(Contract):
    """Whether a settlement input is current."""

    answer: Annotated[
        SettlementInputCurrent | SettlementInputSuperseded | NotFound | SettlementConflict,
        Field(discriminator="result"),
    ]


_CATCH_UP: Final = frozenset({"work.catch-up"})

VALIDATE_FOR_CATCH_UP_FENCE: Final = ReadOperation(
    "validateSettlementInputCurrent",
    "metering",
    "billing_catch_up_fence",
    arguments=SettlementInputValidation,
    answer=SettlementInputValidationAnswer,
    callers=_CATCH_UP,
)
VALIDATE_FOR_TRANSITION: Final = ReadOperation(
    "validateSettlementInputCurrent",
    "metering",
    "post_finalization_transition",
    arguments=SettlementInputValidation,
    answer=SettlementInputValidationAnswer,
    callers=_CATCH_UP,
)


class MeteringReceiptQuestion(MeteringInputProcessorConsumerReceiptQuad):
    """One receipt, and the event it must be for."""

    event_id: EventId
    event_envelope_digest_algorithm_version: Algorithm
    event_envelope_sha256: Digest
    source: Annotated[SourceExecutionEligibility | SourceGatewayAvailability, Field(discriminator="kind")]


class MeteringReceiptFound(Contract):
    """The receipt."""

    result: Literal["found"] = "found"
    receipt: MeteringInputProcessorConsumerReceipt


class MeteringReceiptAnswer(Contract):
    """What is known of a receipt."""

    answer: Annotated[MeteringReceiptFound | NotFound | Conflicting, Field(discriminator="result")]


READ_METERING_INPUT_PROCESSOR_CONSUMER_RECEIPT: Final = ReadOperation(
    "readMeteringInputProcessorConsumerReceipt",
    "metering",
    "receipt_verification",
    arguments=MeteringReceiptQuestion,
    answer=MeteringReceiptAnswer,
    callers=frozenset({"dispatch.execution", "dispatch.gateway"}),
)
