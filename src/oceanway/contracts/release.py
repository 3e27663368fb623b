"""The release: thirteen events, fourteen mandatory members, four consumers (SET-21 to SET-29, annex B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from oceanway.contracts.events import (
    EVENTS,
    AttemptEligibilityFinalized,
    FinalizationReconciliationResolutionAppliedEvent,
    GatewayEvidenceAvailabilityCurrentChanged,
    OwnerEvent,
    RunFinalizationClosed,
    SettlementInputCurrentChanged,
)
from oceanway.contracts.receipts.registry import RECEIPTS
from seapost.contracts.delivery_set import RequiredProjectionTarget
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import ContractError
from seapost.outbox.application import Application, Destination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seapost.contracts.delivery_set import DeliverySetDefinition, DeliverySetMember

PROJECTION: Final = ("operations", "1")
"""Name and version of the first projection (REF-05)."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who receives at a destination, and the one receipt type that proves it (DLV-02, SET-10)."""

    name: str
    receipt: str


CONSUMERS: Final[Mapping[str, Consumer]] = {
    "core_operations": Consumer("operations_projector", "OperationsProjectionAppliedReceipt"),
    "metering_input_processor": Consumer("metering_input_processor_consumer", "MeteringInputProcessorConsumerReceipt"),
    "billing_finalization_coordinator": Consumer(
        "billing_finalization_coordinator_consumer", "BillingFinalizationCoordinatorConsumerReceipt"
    ),
    "billing_settlement_catch_up": Consumer(
        "billing_settlement_catch_up_consumer", "BillingSettlementCatchUpConsumerReceipt"
    ),
}
"""The four destinations, closed (GEN-12)."""

_ROUTES: Final[Mapping[type[OwnerEvent], tuple[str, ...]]] = {
    AttemptEligibilityFinalized: ("metering_input_processor",),
    GatewayEvidenceAvailabilityCurrentChanged: ("metering_input_processor",),
    RunFinalizationClosed: ("billing_finalization_coordinator",),
    FinalizationReconciliationResolutionAppliedEvent: ("billing_finalization_coordinator", "core_operations"),
    SettlementInputCurrentChanged: ("billing_settlement_catch_up",),
}
"""Where an event goes that does not go to operations alone."""


def application(projection: tuple[str, str] = PROJECTION) -> Application:
    """The routes of OceanWay, with the projection that operations must prove."""
    made = Application("oceanway", receipts=RECEIPTS)
    target = ProjectionTarget(*projection)
    for event in EVENTS:
        for name in _ROUTES.get(event, ("core_operations",)):
            consumer = CONSUMERS[name]
            made.route(
                event,
                Destination(
                    name,
                    consumer=consumer.name,
                    receipt=(consumer.receipt, "1"),
                    projection=target if name == "core_operations" else None,
                ),
            )
    return made


def check_definition(definition: DeliverySetDefinition) -> None:
    """Refuse a definition that sends an event otherwise than to the four consumers (SET-09, SET-10, DLV-02).

    Raises:
        ContractError: a destination is unknown, or its consumer, receipt or projection target is not its own.
    """
    for index, member in enumerate(definition.members):
        _check_member(member, f"/members/{index}")
    definition.check_receipts(RECEIPTS)


def _check_member(member: DeliverySetMember, pointer: str) -> None:
    consumer = CONSUMERS.get(member.destination)
    if consumer is None:
        raise ContractError("No such destination", pointer=f"{pointer}/destination", rule="unknown_destination")
    if member.consumer_name != consumer.name:
        raise ContractError("Another consumer's name", pointer=f"{pointer}/consumerName", rule="member_consumer")
    receipt = (member.expected_receipt_type, member.expected_receipt_schema_version)
    if receipt != (consumer.receipt, "1"):
        raise ContractError("Another receipt type", pointer=f"{pointer}/expectedReceiptType", rule="member_receipt")
    is_projected = isinstance(member.projection_target, RequiredProjectionTarget)
    if is_projected != (member.destination == "core_operations"):
        message = "Exactly operations has a projection target"
        raise ContractError(message, pointer=f"{pointer}/projectionTarget", rule="member_branch")
