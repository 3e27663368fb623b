"""Whether a consumer's answer proves that this delivery was applied (DLV-07, DLV-08, DLV-11, DLV-19).

Every expected value comes from the frozen member and the stored event of the claim. Nothing the consumer
says about itself is ever used as what it is compared with (SET-11, SET-20). That the claim still holds
its lease is the database's part of the check.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seapost.contracts.ack import ack_bytes, decode_ack
from seapost.contracts.digest import ALGORITHM
from seapost.contracts.envelope import read_envelope
from seapost.contracts.receipts import ProjectionReceipt
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from seapost.contracts.receipt_registry import ReceiptRegistry, ReceiptType
    from seapost.contracts.receipts import Receipt
    from seapost.model.delivery import Claim
    from seapost.model.outcome import Acknowledged


@dataclass(frozen=True, slots=True)
class VerifiedReceipt:
    """A receipt that proves a delivery, in the form the database stores it.

    Attributes:
        candidate: canonical bytes that `digest` is the SHA-256 of.
        digest: 32 bytes.
    """

    ref: str
    candidate: bytes
    digest: bytes
    receipt_type: str
    schema_version: str
    algorithm: str


def verify_acknowledgement(registry: ReceiptRegistry, claim: Claim, acknowledged: Acknowledged) -> VerifiedReceipt:
    """Check receipt and acknowledgement against the claim.

    Raises:
        UnknownContract: this release does not know the receipt type the member expects.
        ContractError: anything does not match; `rule` says what, `pointer` where. The rules of a
            receipt start with `receipt_`, those of an acknowledgement with `ack_`, unless the
            document itself breaks its contract.
    """
    member = claim.member
    kind = registry.get(member.receipt_type, member.receipt_schema_version)
    receipt, candidate = kind.model.decode_with_candidate(acknowledged.receipt)
    _compare_receipt(receipt, claim)
    _compare_projection(receipt, kind, claim)
    if kind.compare is not None:
        kind.compare(receipt, read_envelope(claim.envelope))
    if not hmac.compare_digest(acknowledged.ack, ack_bytes(kind, receipt)):
        _compare_ack(registry, kind, receipt, acknowledged.ack)
    quad = receipt.quad()
    return VerifiedReceipt(
        ref=quad.ref,
        candidate=candidate,
        digest=bytes.fromhex(quad.digest),
        receipt_type=kind.name,
        schema_version=kind.schema_version,
        algorithm=quad.digest_algorithm_version,
    )


def _compare_receipt(receipt: Receipt, claim: Claim) -> None:
    """The receipt is for this event, in this form, from this consumer."""
    member = claim.member
    _require(receipt.destination, member.destination, "destination", "receipt_destination")
    _require(receipt.consumer_name, member.consumer_name, "consumerName", "receipt_consumer")
    _require(receipt.event_id, str(claim.fence.event_id), "eventId", "receipt_event")
    _require(receipt.event_type, member.event_type, "eventType", "receipt_event_type")
    _require(receipt.event_schema_version, member.schema_version, "eventSchemaVersion", "receipt_event_schema")
    stated = receipt.event_envelope_digest_algorithm_version
    _require(stated, ALGORITHM, "eventEnvelopeDigestAlgorithmVersion", "receipt_event_algorithm")
    if not hmac.compare_digest(bytes.fromhex(receipt.event_envelope_sha256), claim.event_digest):
        raise _mismatch("eventEnvelopeSha256", "receipt_event_digest")


def _compare_projection(receipt: Receipt, kind: ReceiptType, claim: Claim) -> None:
    """A projection's receipt is from the frozen target, never from a shadow or another version (SET-32)."""
    target = claim.member.projection
    if kind.is_projection != (target is not None):
        message = "The member's projection target does not fit its expected receipt type"
        raise ContractError(message, rule="member_branch")
    if target is not None:
        assert isinstance(receipt, ProjectionReceipt)  # noqa: S101 - what `is_projection` means
        _require(receipt.projection_name, target.name, "projectionName", "receipt_projection")
        _require(receipt.projection_version, target.version, "projectionVersion", "receipt_projection")


def _compare_ack(registry: ReceiptRegistry, kind: ReceiptType, receipt: Receipt, document: bytes) -> None:
    """The acknowledgement is legal, though perhaps spelled in another way, and names this receipt."""
    ack = decode_ack(registry, document)
    _require(ack.destination, receipt.destination, "destination", "ack_destination")
    _require(ack.consumer_name, receipt.consumer_name, "consumerName", "ack_consumer")
    _require(ack.event_id, receipt.event_id, "eventId", "ack_event")
    _require(ack.event_envelope_sha256, receipt.event_envelope_sha256, "eventEnvelopeSha256", "ack_event_digest")
    if ack.receipt_type != kind:
        raise _mismatch("appliedReceipt/kind", "ack_branch")
    if ack.applied_receipt != receipt.quad():
        raise _mismatch("appliedReceipt", "ack_receipt")


def _require(stated: str, expected: str, name: str, rule: str) -> None:
    if stated != expected:
        raise _mismatch(name, rule)


def _mismatch(name: str, rule: str) -> ContractError:
    what = "acknowledgement" if rule.startswith("ack_") else "receipt"
    return ContractError(f"The {what} does not belong to this delivery", pointer=f"/{name}", rule=rule)
