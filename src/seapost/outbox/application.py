"""What a producer declares once: its events, and which destination must learn each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seapost.contracts.delivery_set import (
    DeliverySetDefinition,
    DeliverySetMember,
    NoProjectionTarget,
    RequiredProjectionTarget,
    derive,
)
from seapost.contracts.events import EventRegistry
from seapost.contracts.identifiers import check_name
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seapost.contracts.events import Event
    from seapost.contracts.receipt_registry import ReceiptRegistry
    from seapost.model.delivery_set import ProjectionTarget

FAIR_LANES_MAX: Final = 256
USUAL_RECEIPT: Final = ("ConsumerReceipt", "1")
USUAL_PROJECTION_RECEIPT: Final = ("ProjectionAppliedReceipt", "1")


@dataclass(frozen=True, slots=True)
class Destination:
    """One line of a route, where a name alone does not say everything.

    Attributes:
        name: the destination, such as `billing`.
        consumer: who receives there; by default the destination's own name.
        receipt: type and schema version of the only receipt that is believed; by default the kernel's own one, for a
            consumer or for a projection.
        projection: the exact projection, for receipt types that prove one.
        mandatory: whether every event creates a delivery here; others create none (AMB-11).
        fair_lanes: over how many queues the tenants of this destination are spread, so that one with a long backlog
            does not postpone the others (F23); 1: one queue. None says nothing: what the database holds stays. It is
            an operational setting, applied with the routes and part of no delivery set.
    """

    name: str
    consumer: str | None = None
    receipt: tuple[str, str] | None = None
    projection: ProjectionTarget | None = None
    mandatory: bool = True
    fair_lanes: int | None = None

    def __post_init__(self) -> None:
        """Refuse a number of lanes beyond the limits."""
        lanes = self.fair_lanes
        if lanes is not None and (type(lanes) is not int or not 1 <= lanes <= FAIR_LANES_MAX):
            raise ContractError(
                f"The fair_lanes of {self.name} are a whole number from 1 to {FAIR_LANES_MAX}", rule="fair_lanes"
            )


class Application:
    """The routes of one application; `seapost routes` turns them into a delivery set.

    ```python
    shop = seapost.Application("shop")
    shop.route(OrderPlaced, "billing", "search")
    ```
    """

    def __init__(self, name: str, *, receipts: ReceiptRegistry | None = None) -> None:
        self.name = check_name(name, "/name")
        self.events = EventRegistry()
        self.receipts = receipts or DEFAULT_RECEIPTS
        self._members: dict[tuple[str, str, str], DeliverySetMember] = {}
        self._fair_lanes: dict[str, int] = {}

    @property
    def fair_lanes(self) -> Mapping[str, int]:
        """The fair lanes of each destination that declares them."""
        return dict(self._fair_lanes)

    def event(self, event: type[Event]) -> type[Event]:
        """Declare an event; as a decorator it returns the class. An event without a route reaches nobody."""
        return self.events.register(event)

    def route(self, event: type[Event], *destinations: str | Destination) -> None:
        """Declare that every `event` must reach `destinations`.

        Raises:
            ContractError: a name breaks its rule, the receipt type is not registered, or this destination of the event
                already belongs to another consumer (SET-07) or declares other fair lanes.
        """
        _ = self.events.register(event)
        for given in destinations:
            destination = Destination(given) if isinstance(given, str) else given
            member = self._member(event, destination)
            place = (member.event_type, member.event_schema_version, member.destination)
            known = self._members.setdefault(place, member)
            if known != member:
                message = f"Destination {destination.name} of {member.event_type} is already routed otherwise"
                raise ContractError(message, rule="routed_twice")
            lanes = destination.fair_lanes
            if lanes is not None and self._fair_lanes.setdefault(destination.name, lanes) != lanes:
                message = f"Destination {destination.name} is declared with other fair_lanes already"
                raise ContractError(message, rule="fair_lanes")

    def definition(self, version: str) -> DeliverySetDefinition:
        """The delivery set of these routes under a version: sorted, counted and digested (SET-01..12)."""
        pairs = [(event.event_type, event.event_schema_version) for event in self.events]
        return derive(version, self._members.values(), events=pairs, receipts=self.receipts)

    def __iter__(self) -> Iterator[DeliverySetMember]:
        """The declared lines, in the order of the definition."""
        return iter(sorted(self._members.values(), key=DeliverySetMember.key))

    def _member(self, event: type[Event], destination: Destination) -> DeliverySetMember:
        usual = USUAL_RECEIPT if destination.projection is None else USUAL_PROJECTION_RECEIPT
        receipt_type, receipt_version = destination.receipt or usual
        _ = self.receipts.get(receipt_type, receipt_version)
        target = destination.projection
        return DeliverySetMember(
            event_type=event.event_type,
            event_schema_version=event.event_schema_version,
            destination=destination.name,
            consumer_name=destination.consumer or destination.name,
            expected_receipt_type=receipt_type,
            expected_receipt_schema_version=receipt_version,
            projection_target=NoProjectionTarget()
            if target is None
            else RequiredProjectionTarget(projection_name=target.name, projection_version=target.version),
            mandatory=destination.mandatory,
        )
