"""The four receipt types, closed, each with the comparison of its business identity with the event (DLV-02, DLV-19)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.receipts.catch_up import BillingSettlementCatchUpConsumerReceipt
from oceanway.contracts.receipts.coordinator import BillingFinalizationCoordinatorConsumerReceipt
from oceanway.contracts.receipts.metering import MeteringInputProcessorConsumerReceipt
from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from oceanway.contracts.receipts.sourced import require_payload
from seapost.contracts.receipt_registry import ReceiptRegistry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seapost.contracts.envelope import Envelope
    from seapost.contracts.receipts import Receipt

_OF_THE_BRANCH: Final = frozenset({"kind", "eventType", "eventSchemaVersion"})
_OF_THE_SUBJECT: Final = (
    "tenantKind",
    "tenantId",
    "workspaceId",
    "projectId",
    "billingReservationId",
    "billingAccountId",
    "runId",
    "runStepId",
    "executionAttemptId",
    "chargeDimensionKey",
    "settlementEconomicIdentity",
)


def compare_source(receipt: Receipt, envelope: Envelope) -> None:
    """Require every field of the receipt's source to be the event's.

    Raises:
        ContractError: one differs, with its place in the receipt.
    """
    source: Any = getattr(receipt, "source")  # noqa: B009 - only the two receipts with a source are compared here
    stated = {name: value for name, value in source.to_json().items() if name not in _OF_THE_BRANCH}
    require_payload(stated, envelope.payload, "/source")


def compare_settlement_input(receipt: Receipt, envelope: Envelope) -> None:
    """Require dimension, economic identity and settlement input of the receipt to be the event's.

    Raises:
        ContractError: one differs, with its place in the receipt.
    """
    document = receipt.to_json()
    require_payload({name: document[name] for name in _OF_THE_SUBJECT if name in document}, envelope.payload)
    stated: Mapping[str, Any] = document["eventSettlementInput"]  # pyright: ignore[reportAssignmentType]
    require_payload(stated, envelope.payload, "/eventSettlementInput")


def oceanway_receipts() -> ReceiptRegistry:
    """A new registry of exactly the four types, closed."""
    registry = ReceiptRegistry()
    _ = registry.register(OperationsProjectionAppliedReceipt, ack_kind="operations_projection")
    _ = registry.register(
        MeteringInputProcessorConsumerReceipt, ack_kind="metering_input_processor", compare=compare_source
    )
    _ = registry.register(
        BillingFinalizationCoordinatorConsumerReceipt,
        ack_kind="billing_finalization_coordinator",
        compare=compare_source,
    )
    _ = registry.register(
        BillingSettlementCatchUpConsumerReceipt,
        ack_kind="billing_settlement_catch_up",
        compare=compare_settlement_input,
    )
    return registry.close()


RECEIPTS: Final = oceanway_receipts()
"""Shared by every owner; closed."""
