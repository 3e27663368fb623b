"""Which receipt types exist, and which of them prove a projection; closed once the application has started (AMB-38)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seapost.contracts.receipts import ConsumerReceipt, ProjectionAppliedReceipt, ProjectionReceipt, Receipt
from seapost.model.errors import ContractError, UnknownContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seapost.contracts.envelope import Envelope


@dataclass(frozen=True, slots=True)
class ReceiptType:
    """One registered receipt type.

    Attributes:
        name: the contract's name, such as `ConsumerReceipt`; members name it as their expected receipt.
        schema_version: the exact version `model` reads.
        ack_kind: `kind` of its branch in the acknowledgement, such as `consumer_receipt`.
        prefix: first part of the quad's wire names, such as `consumerReceipt`.
        is_projection: whether it proves a projection, and so needs a projection target.
        compare: compares what the receipt says beyond the common fields with the event it is for, and
            raises `ContractError`; for receipt types with a business identity of their own (DLV-19).
    """

    name: str
    schema_version: str
    model: type[Receipt]
    ack_kind: str
    prefix: str
    is_projection: bool
    compare: Callable[[Receipt, Envelope], None] | None = None


class ReceiptRegistry:
    """The receipt types of one application."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, str], ReceiptType] = {}
        self._closed = False

    def register(
        self,
        model: type[Receipt],
        *,
        ack_kind: str,
        compare: Callable[[Receipt, Envelope], None] | None = None,
    ) -> ReceiptType:
        """Add a receipt type; registering the same again changes nothing.

        A model derived from `ProjectionReceipt` is a projection receipt.

        Raises:
            ContractError: the registry is closed, or the name or kind already means something else.
        """
        entry = ReceiptType(
            name=model.__name__,
            schema_version=model.schema_version,
            model=model,
            ack_kind=ack_kind,
            prefix=model.addressing.prefix,
            is_projection=issubclass(model, ProjectionReceipt),
            compare=compare,
        )
        pair = (entry.name, entry.schema_version)
        if self._types.get(pair) == entry:
            return entry
        if self._closed:
            message = "Receipt types are registered before the application starts; the registry is closed"
            raise ContractError(message, rule="registry_closed")
        taken = pair in self._types or any(other.ack_kind == ack_kind for other in self)
        if taken:
            message = f"{entry.name}@{entry.schema_version} or its kind {ack_kind} is already registered otherwise"
            raise ContractError(message, rule="registered_twice")
        self._types[pair] = entry
        return entry

    def close(self) -> ReceiptRegistry:
        """Refuse every later registration; returns the registry itself."""
        self._closed = True
        return self

    def get(self, name: str, schema_version: str) -> ReceiptType:
        """The type of an exact name and version.

        Raises:
            UnknownContract: there is none.
        """
        try:
            return self._types[name, schema_version]
        except KeyError:
            message = f"No receipt type {name} with schema version {schema_version} is registered"
            raise UnknownContract(message, rule="unknown_receipt_type") from None

    def of(self, receipt: Receipt) -> ReceiptType:
        """The type of a receipt object; raises `UnknownContract` when its class is not registered."""
        entry = self.get(type(receipt).__name__, receipt.schema_version)
        if entry.model is not type(receipt):
            message = f"{entry.name} is registered with another class"
            raise UnknownContract(message, rule="unknown_receipt_type")
        return entry

    def __iter__(self) -> Iterator[ReceiptType]:
        """The types, sorted by name and version."""
        return iter([self._types[pair] for pair in sorted(self._types)])


def kernel_receipts() -> ReceiptRegistry:
    """A new, open registry that holds what the kernel brings: `ConsumerReceipt@1` and `ProjectionAppliedReceipt@1`."""
    registry = ReceiptRegistry()
    _ = registry.register(ConsumerReceipt, ack_kind="consumer_receipt")
    _ = registry.register(ProjectionAppliedReceipt, ack_kind="projection_applied_receipt")
    return registry


DEFAULT_RECEIPTS = kernel_receipts().close()
"""For applications that register no receipt types of their own."""
