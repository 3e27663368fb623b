"""The receipts that the kernel brings: a consumer's durable proof that one event was applied (AMB-38)."""

from __future__ import annotations

from typing import Literal

from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import (
    Algorithm,
    Digest,
    EventId,
    EventType,
    Identifier,
    Name,
    Timestamp,
    Version,
)


class Receipt(ContentAddressed):
    """What every receipt says, whatever its type: which event, in which form, at which consumer (DLV-19).

    A receipt type of an application derives from this class and adds its quad and its own facts.
    """

    destination: Name
    consumer_name: Name
    event_id: EventId
    event_type: EventType
    event_schema_version: Version
    event_envelope_digest_algorithm_version: Algorithm
    event_envelope_sha256: Digest


class ProjectionReceipt(Receipt):
    """A receipt that also says which projection applied the event; only a frozen target may accept it (SET-11)."""

    projection_name: Name
    projection_version: Version


class ProjectionAppliedReceipt(ProjectionReceipt, prefix="projectionAppliedReceipt", outside=("appliedAt",)):
    """The receipt of a projection that needs none of its own: this version applied the event."""

    projection_applied_receipt_ref: Identifier
    projection_applied_receipt_schema_version: Literal["1"]
    projection_applied_receipt_digest_algorithm_version: Algorithm
    projection_applied_receipt_digest: Digest
    applied_at: Timestamp


class ConsumerReceipt(Receipt, prefix="consumerReceipt", outside=("committedAt",)):
    """The receipt of an ordinary consumer, committed in one transaction with the effect.

    The digest leaves out the reference and the time of the commit, so that a consumer can compute the
    candidate before it knows either.
    """

    consumer_receipt_ref: Identifier
    consumer_receipt_schema_version: Literal["1"]
    consumer_receipt_digest_algorithm_version: Algorithm
    consumer_receipt_digest: Digest
    outcome: Literal["applied"]
    committed_at: Timestamp
