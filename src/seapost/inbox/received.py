"""What a handler may know about the event it is given, besides the payload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from seapost.contracts.envelope import Aggregate, Correlation, Envelope, Tenant


@dataclass(frozen=True, slots=True)
class Received:
    """The envelope of the event being handled; the optional third parameter of a handler.

    Attributes:
        attempt_number: 1 for the first delivery of this event to this consumer. A higher number does not
            mean that an earlier attempt had an effect: whatever an attempt did without committing is gone.
    """

    event_id: UUID
    event_type: str
    schema_version: str
    producer: str
    aggregate: Aggregate
    tenant: Tenant
    correlation: Correlation
    occurred_at: datetime
    attempt_number: int

    @classmethod
    def of(cls, envelope: Envelope, attempt_number: int) -> Self:
        """What this envelope says, delivered for the n-th time."""
        return cls(
            event_id=envelope.event_id,
            event_type=envelope.event_type,
            schema_version=envelope.event_schema_version,
            producer=envelope.producer,
            aggregate=envelope.aggregate,
            tenant=envelope.tenant,
            correlation=envelope.correlation,
            occurred_at=envelope.occurred_at,
            attempt_number=attempt_number,
        )
