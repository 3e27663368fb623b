"""Small honest documents to start from; each test changes the one thing it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from seapost.contracts.ack import build_ack
from seapost.contracts.delivery_set import (
    DeliverySetDefinition,
    DeliverySetMember,
    NoProjectionTarget,
    RequiredProjectionTarget,
    derive,
)
from seapost.contracts.digest import ALGORITHM
from seapost.contracts.envelope import Aggregate, PreparedEvent, Tenant, build_envelope_of, read_envelope
from seapost.contracts.events import Event
from seapost.contracts.examination import JSONValue
from seapost.contracts.fields import Algorithm, Digest, Identifier, Timestamp
from seapost.contracts.receipt_registry import ReceiptRegistry, kernel_receipts
from seapost.contracts.receipts import ConsumerReceipt, ProjectionReceipt, Receipt
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import Member, ProjectionTarget

EVENT_ID = UUID("0197f3c0-5a2e-7c31-9d4b-0a1b2c3d4e5f")
OTHER_EVENT_ID = UUID("0197f3c0-5a2e-7c31-9d4b-0a1b2c3d4e60")
MOMENT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
TENANT = Tenant("organization", "acme", "main")


class OrderPlaced(Event, type="order.placed@1", producer="shop"):
    """An order as the tests place it."""

    order_id: str
    count: int


class SearchReceipt(ProjectionReceipt, prefix="searchReceipt", outside=("appliedAt",)):
    """A projection receipt, as an application would register it."""

    search_receipt_ref: Identifier
    search_receipt_schema_version: Literal["1"]
    search_receipt_digest_algorithm_version: Algorithm
    search_receipt_digest: Digest
    applied_at: Timestamp


def receipt_registry() -> ReceiptRegistry:
    """The kernel's receipt and one projection receipt."""
    registry = kernel_receipts()
    _ = registry.register(SearchReceipt, ack_kind="search")
    return registry


def prepared(payload: dict[str, JSONValue] | None = None, event_id: UUID = EVENT_ID) -> PreparedEvent:
    """An appended order, with a fixed id and moment."""
    return build_envelope_of(
        {"order_id": "17", "count": 1} if payload is None else payload,
        event_type="order.placed@1",
        event_schema_version="1",
        producer="shop",
        aggregate=Aggregate("order", "order-17", 1),
        tenant=TENANT,
        occurred_at=MOMENT,
        event_id=event_id,
    )


def member(
    destination: str = "billing",
    consumer: str = "billing",
    *,
    event_type: str = "order.placed@1",
    schema_version: str = "1",
    projection: tuple[str, str] | None = None,
    mandatory: bool = True,
) -> DeliverySetMember:
    """One line of a definition; with a projection it expects the projection receipt."""
    target = (
        NoProjectionTarget()
        if projection is None
        else RequiredProjectionTarget(projection_name=projection[0], projection_version=projection[1])
    )
    return DeliverySetMember(
        event_type=event_type,
        event_schema_version=schema_version,
        destination=destination,
        consumer_name=consumer,
        expected_receipt_type="ConsumerReceipt" if projection is None else "SearchReceipt",
        expected_receipt_schema_version="1",
        projection_target=target,
        mandatory=mandatory,
    )


def definition(*members: DeliverySetMember, version: str = "1") -> DeliverySetDefinition:
    """A definition of these lines, by default of one."""
    return derive(version, members or (member(),), receipts=receipt_registry())


def claim(line: DeliverySetMember | None = None, event: PreparedEvent | None = None) -> Claim:
    """A claimed delivery of `event` to the destination of `line`."""
    line = member() if line is None else line
    event = prepared() if event is None else event
    target = line.projection_target
    frozen = Member(
        member_id=1,
        definition=definition(line).definition_quad(),
        event_type=line.event_type,
        schema_version=line.event_schema_version,
        destination=line.destination,
        consumer_name=line.consumer_name,
        mandatory=line.mandatory,
        receipt_type=line.expected_receipt_type,
        receipt_schema_version=line.expected_receipt_schema_version,
        projection=ProjectionTarget(target.projection_name, target.projection_version)
        if isinstance(target, RequiredProjectionTarget)
        else None,
    )
    return Claim(
        destination=line.destination,
        fence=Fence(event.event_id, 1, UUID(int=1)),
        attempt_number=1,
        failure_count=0,
        lost_count=0,
        company=1,
        member=frozen,
        event_digest=read_envelope(event.envelope).digest,
        envelope=event.envelope,
        available_at=MOMENT,
    )


def receipt(**changes: object) -> ConsumerReceipt:
    """The receipt that the consumer `billing` gives for `prepared()`, with some fields changed."""
    return ConsumerReceipt.assemble(
        **{
            **_identity("billing", "billing"),
            "consumer_receipt_ref": "billing-1",
            "outcome": "applied",
            "committed_at": "2026-03-29T01:30:01.000000Z",
            **changes,
        }
    )


def search_receipt(**changes: object) -> SearchReceipt:
    """The receipt that the projection `search` version 3 gives for `prepared()`, with some fields changed."""
    return SearchReceipt.assemble(
        **{
            **_identity("search", "search_projector"),
            "search_receipt_ref": "search-1",
            "projection_name": "search",
            "projection_version": "3",
            "applied_at": "2026-03-29T01:30:01.000000Z",
            **changes,
        }
    )


def ack(of: Receipt) -> bytes:
    """The acknowledgement that names this receipt."""
    return build_ack(receipt_registry(), of)


def _identity(destination: str, consumer: str) -> dict[str, object]:
    event = read_envelope(prepared().envelope)
    return {
        "destination": destination,
        "consumer_name": consumer,
        "event_id": str(event.event_id),
        "event_type": event.event_type,
        "event_schema_version": event.event_schema_version,
        "event_envelope_digest_algorithm_version": ALGORITHM,
        "event_envelope_sha256": event.digest.hex(),
    }
