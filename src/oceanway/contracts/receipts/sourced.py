"""A receipt that says in its `source` which event type it is for, and not beside it (RCP-12, RCP-37)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oceanway.contracts.order import require_equal
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, EventId, Name
from seapost.contracts.receipts import Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    SourcedReceipt = Receipt
else:

    class SourcedReceipt(ContentAddressed):
        """Has the common fields of a receipt, and reads type and schema version of the event from `source`."""

        destination: Name
        consumer_name: Name
        event_id: EventId
        event_envelope_digest_algorithm_version: Algorithm
        event_envelope_sha256: Digest

        @property
        def event_type(self) -> str:
            """The type of the event."""
            return self.source.event_type

        @property
        def event_schema_version(self) -> str:
            """The schema version of the event's payload."""
            return self.source.event_schema_version


def require_payload(stated: Mapping[str, Any], payload: Mapping[str, Any], pointer: str = "") -> None:
    """Raise `ContractError` unless the payload has every stated field, and no project that is not stated (DLV-19)."""
    for name, value in stated.items():
        require_equal(value, payload.get(name), f"{pointer}/{name}", "receipt_identity")
    if "tenantId" in stated:
        require_equal(stated.get("projectId"), payload.get("projectId"), f"{pointer}/projectId", "receipt_identity")
