"""Seapost: committed facts out of PostgreSQL, believed only with a receipt; this module holds the public names only."""

from __future__ import annotations

from seapost.contracts.envelope import Aggregate, Correlation, PreparedEvent, Tenant, new_event_id
from seapost.contracts.events import Event, EventPart
from seapost.contracts.receipt_registry import ReceiptRegistry
from seapost.inbox.deciding import Arrived, Conflicting, Deciding, DecidingInbox, read_decided
from seapost.inbox.inbox import Inbox
from seapost.inbox.received import Received
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import (
    AppendOutsideTransaction,
    ContractError,
    EventConflict,
    EventNotRoutable,
    NoActiveDeliverySet,
    Reject,
    Retry,
    SeapostError,
)
from seapost.outbox.append import append, append_async, append_many, append_many_async, prepare
from seapost.outbox.application import Application, Destination
from seapost.projections.projection import Projection

__all__ = [
    "Aggregate",
    "AppendOutsideTransaction",
    "Application",
    "Arrived",
    "Conflicting",
    "ContractError",
    "Correlation",
    "Deciding",
    "DecidingInbox",
    "Destination",
    "Event",
    "EventConflict",
    "EventNotRoutable",
    "EventPart",
    "Inbox",
    "NoActiveDeliverySet",
    "PreparedEvent",
    "Projection",
    "ProjectionTarget",
    "ReceiptRegistry",
    "Received",
    "Reject",
    "Retry",
    "SeapostError",
    "Tenant",
    "append",
    "append_async",
    "append_many",
    "append_many_async",
    "new_event_id",
    "prepare",
    "read_decided",
]
