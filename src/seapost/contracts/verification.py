"""Whether a consumer's answer proves that this delivery was applied (DLV-07, DLV-08, DLV-11, DLV-19).

Every expected value comes from the frozen member and the stored event of the claim. Nothing the consumer
says about itself is ever used as what it is compared with (SET-11, SET-20). That the claim still holds
its lease is the database's part of the check.

The usual answer, a canonical `ConsumerReceipt@1` and its acknowledgement, is recognised by writing down what they must
say and comparing bytes. Whatever differs in one byte is judged field by field; a property test holds both ways to one
verdict.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from seapost.contracts.ack import ack_bytes, decode_ack
from seapost.contracts.digest import ALGORITHM
from seapost.contracts.envelope import read_envelope
from seapost.contracts.receipt_text import consumer_receipt_texts, is_event_id
from seapost.contracts.receipts import ConsumerReceipt, ProjectionReceipt
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from seapost.contracts.receipt_registry import ReceiptRegistry, ReceiptType
    from seapost.contracts.receipts import Receipt
    from seapost.model.delivery import Claim
    from seapost.model.outcome import Acknowledged


CONSUMER_RECEIPT_KIND: Final = "consumer_receipt"
DIGEST_BYTES: Final = 32


class VerifiedReceipt(NamedTuple):
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
    if kind.model is ConsumerReceipt and kind.compare is None and kind.ack_kind == CONSUMER_RECEIPT_KIND:
        recognised = _recognise(kind, claim, acknowledged)
        if recognised is not None:
            return recognised
    return verify_by_contract(registry, claim, acknowledged)


def verify_by_contract(registry: ReceiptRegistry, claim: Claim, acknowledged: Acknowledged) -> VerifiedReceipt:
    """Check receipt and acknowledgement field by field, whatever legal spelling they have; raises as above."""
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


def _recognise(kind: ReceiptType, claim: Claim, acknowledged: Acknowledged) -> VerifiedReceipt | None:
    """The verified receipt when both texts are, byte for byte, what this claim's must be; None says nothing."""
    member = claim.member
    if member.projection is not None:
        return None
    texts = consumer_receipt_texts(member.consumer_name, member.destination, member.event_type, member.schema_version)
    event_id = str(claim.fence.event_id).encode()
    variables = texts.variables(acknowledged.receipt, event_id)
    if variables is None:
        return None
    reference, moment = variables
    event_digest = claim.event_digest.hex().encode()
    if not is_event_id(event_id) or len(claim.event_digest) != DIGEST_BYTES:
        return None
    candidate = texts.candidate(event_id, event_digest)
    digest = sha256(candidate).digest()
    stated = digest.hex().encode()
    receipt = texts.receipt(event_id, event_digest, receipt_digest=stated, reference=reference, moment=moment)
    ack = texts.ack(event_id, event_digest, receipt_digest=stated, reference=reference)
    if acknowledged.receipt != receipt or acknowledged.ack != ack:
        return None
    return VerifiedReceipt(reference.decode(), candidate, digest, kind.name, kind.schema_version, ALGORITHM)


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
