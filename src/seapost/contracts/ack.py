"""The acknowledgement of a consumer: a closed union over the registered receipt types (DLV-06).

Each branch names the complete quad of one receipt under that receipt's own wire names, so that fields of
two branches can never be mixed. A free string or a plain HTTP 200 has no place in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Field, create_model

from seapost.contracts.canonical import encode
from seapost.contracts.content_addressed import Quad
from seapost.contracts.contract import Contract
from seapost.contracts.fields import Algorithm, Digest, EventId, Identifier, Name

if TYPE_CHECKING:
    from seapost.contracts.examination import JSONValue
    from seapost.contracts.receipt_registry import ReceiptRegistry, ReceiptType
    from seapost.contracts.receipts import Receipt


@dataclass(frozen=True, slots=True)
class ActiveConsumerAck:
    """A decoded acknowledgement; `receipt_type` is the branch, `applied_receipt` the quad it names."""

    destination: str
    consumer_name: str
    event_id: str
    event_envelope_digest_algorithm_version: str
    event_envelope_sha256: str
    receipt_type: ReceiptType
    applied_receipt: Quad


def decode_ack(registry: ReceiptRegistry, document: bytes | str | dict[str, JSONValue]) -> ActiveConsumerAck:
    """Read an acknowledgement strictly.

    Raises:
        ContractError: it is no acknowledgement, its branch is unknown, or branches are mixed.
    """
    fields = ack_contract(registry).decode(document).to_json()
    types = {entry.ack_kind: entry for entry in registry}
    branch: Any = fields["appliedReceipt"]
    kind = types[branch["kind"]]
    return ActiveConsumerAck(
        destination=str(fields["destination"]),
        consumer_name=str(fields["consumerName"]),
        event_id=str(fields["eventId"]),
        event_envelope_digest_algorithm_version=str(fields["eventEnvelopeDigestAlgorithmVersion"]),
        event_envelope_sha256=str(fields["eventEnvelopeSha256"]),
        receipt_type=kind,
        applied_receipt=Quad(*(str(branch[name]) for name in _quad_names(kind.prefix))),
    )


def build_ack(registry: ReceiptRegistry, receipt: Receipt) -> bytes:
    """The canonical bytes of the acknowledgement that names this receipt.

    Raises:
        UnknownContract: the receipt's type is not registered.
    """
    return ack_bytes(registry.of(receipt), receipt)


def ack_bytes(kind: ReceiptType, receipt: Receipt) -> bytes:
    """The canonical bytes of the acknowledgement of a receipt of this type."""
    quad = receipt.quad()
    values = (quad.ref, quad.schema_version, quad.digest_algorithm_version, quad.digest)
    return encode(
        {
            "destination": receipt.destination,
            "consumerName": receipt.consumer_name,
            "eventId": receipt.event_id,
            "eventEnvelopeDigestAlgorithmVersion": receipt.event_envelope_digest_algorithm_version,
            "eventEnvelopeSha256": receipt.event_envelope_sha256,
            "appliedReceipt": {"kind": kind.ack_kind, **dict(zip(_quad_names(kind.prefix), values, strict=True))},
        }
    )


def ack_contract(registry: ReceiptRegistry) -> type[Contract]:
    """`ActiveConsumerAck@1` over the registered kinds, as a class to decode with and to publish."""
    return _contract_over(tuple(registry))


@lru_cache(maxsize=64)
def _contract_over(types: tuple[ReceiptType, ...]) -> type[Contract]:
    branches = tuple(_branch(kind) for kind in types)
    union: Any = Union[branches]  # noqa: UP007 - the branches are known only now
    if len(branches) > 1:
        union = Annotated[union, Field(discriminator="kind")]
    return create_model(
        "ActiveConsumerAck",
        __base__=Contract,
        __doc__="A consumer's answer: which event, and which receipt proves that it was applied.",
        destination=(Name, ...),
        consumer_name=(Name, ...),
        event_id=(EventId, ...),
        event_envelope_digest_algorithm_version=(Algorithm, ...),
        event_envelope_sha256=(Digest, ...),
        applied_receipt=(union, ...),
    )


def _branch(kind: ReceiptType) -> type[Contract]:
    ref, schema_version, algorithm, digest = _quad_names(kind.prefix)
    # The version is a literal: a receipt of another schema version is another branch.
    fields: dict[str, Any] = {
        "kind": (Literal[kind.ack_kind], ...),  # pyright: ignore[reportInvalidTypeForm]
        ref: (Identifier, ...),
        schema_version: (Literal[kind.schema_version], ...),  # pyright: ignore[reportInvalidTypeForm]
        algorithm: (Algorithm, ...),
        digest: (Digest, ...),
    }
    return create_model(f"Applied{kind.name}", __base__=Contract, __doc__=f"Names one {kind.name}.", **fields)


def _quad_names(prefix: str) -> tuple[str, str, str, str]:
    return f"{prefix}Ref", f"{prefix}SchemaVersion", f"{prefix}DigestAlgorithmVersion", f"{prefix}Digest"
