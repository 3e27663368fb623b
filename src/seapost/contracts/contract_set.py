"""What is published together: contracts by name and version, and the events of one application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seapost.contracts.ack import ack_contract
from seapost.contracts.delivery_set import DeliverySetDefinition
from seapost.contracts.envelope_contract import CanonicalEventEnvelope
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, ReceiptRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seapost.contracts.contract import StrictModel
    from seapost.contracts.events import Event


@dataclass(frozen=True, slots=True)
class Published:
    """One contract under its name and version."""

    name: str
    version: str
    model: type[StrictModel]

    @property
    def title(self) -> str:
        """Name and version in one word, such as `ConsumerReceipt@1`; also its file name."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class ContractSet:
    """The contracts of one package, such as the kernel's.

    Attributes:
        name: file name of the TypeScript module.
        contracts: documents, sorted by name and version.
        events: payload classes, sorted by event type and schema version.
    """

    name: str
    contracts: tuple[Published, ...]
    events: tuple[type[Event], ...] = ()

    def get(self, title: str) -> type[StrictModel] | None:
        """The class published under `Name@version`, or None."""
        return next((entry.model for entry in self.contracts if entry.title == title), None)


def kernel_contracts(receipts: ReceiptRegistry = DEFAULT_RECEIPTS, events: Iterable[type[Event]] = ()) -> ContractSet:
    """The kernel's contracts over these receipt types, with the events of an application."""
    contracts = [
        Published("CanonicalEventEnvelope", "1", CanonicalEventEnvelope),
        Published("DeliverySetDefinition", "1", DeliverySetDefinition),
        Published("ActiveConsumerAck", "1", ack_contract(receipts)),
        *(Published(kind.name, kind.schema_version, kind.model) for kind in receipts),
    ]
    return ContractSet(
        name="seapost",
        contracts=tuple(sorted(contracts, key=lambda entry: (entry.name, entry.version))),
        events=tuple(sorted(events, key=lambda event: (event.event_type, event.event_schema_version))),
    )
