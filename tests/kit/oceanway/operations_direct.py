"""A projection version without an inbox: the same handlers in a session of the test, in the order of each aggregate.

Tests give every order of arrival a version of its own in one database, and then compare what the versions hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from oceanway.contracts.events import (
    BillingFinalizationCommitted,
    CaseResolutionApplied,
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
    LateSettlementCaseRequested,
    LateSettlementCommandResultCommitted,
    RunCreated,
    SettlementTransitionCommitted,
    WalletReserved,
)
from oceanway.operations.projector import Handlers
from oceanway.operations.projector_cases import CaseHandlers
from seapost.contracts.envelope import Aggregate, Correlation, Tenant
from seapost.inbox.deciding import Arrived, Deciding
from seapost.inbox.received import Received
from tests.kit.oceanway.operations import MOMENT, Told

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.client import Reader


def received(told: Told) -> Received:
    """What the envelope of an event says."""
    envelope: dict[str, Any] = json.loads(told.envelope)
    aggregate, tenant, correlation = envelope["aggregate"], envelope["tenant"], envelope["correlation"]
    return Received(
        event_id=UUID(envelope["eventId"]),
        event_type=envelope["eventType"],
        schema_version=envelope["eventSchemaVersion"],
        producer=envelope["producer"],
        aggregate=Aggregate(aggregate["kind"], aggregate["id"], aggregate["revision"]),
        tenant=Tenant(tenant["tenantKind"], tenant["tenantId"], tenant["workspaceId"], tenant.get("projectId")),
        correlation=Correlation(
            correlation["correlationId"], correlation.get("causationId"), correlation.get("operationId")
        ),
        occurred_at=envelope["occurredAt"],
        attempt_number=1,
    )


class Direct:
    """The handlers of one projection version."""

    def __init__(self, connection: Connection[Any], reader: Reader, version: str) -> None:
        self._connection = connection
        self.version = version
        plain, cases = Handlers(version), CaseHandlers(version, reader)
        self._handlers: dict[type[Any], tuple[Any, Any]] = {
            RunCreated: (plain.run_created, None),
            WalletReserved: (plain.wallet_reserved, None),
            BillingFinalizationCommitted: (plain.finalization_committed, None),
            SettlementTransitionCommitted: (plain.transition_committed, None),
            LateSettlementCaseRequested: (plain.late_case_requested, None),
            LateSettlementCommandResultCommitted: (plain.late_result_committed, None),
            CaseResolutionApplied: (cases.late_case_resolved, cases.read_chains),
            FinalizationReconciliationCaseRequested: (cases.case_requested, cases.read_decisions),
            FinalizationReconciliationResolutionAppliedEvent: (cases.case_resolved, cases.read_resolutions),
        }
        self._reached: dict[tuple[str, str], int] = {}

    def apply(self, told: Told) -> None:
        """Apply one event in a transaction of its own; what it raises leaves nothing."""
        handler, prepare = self._handlers[type(told.event)]
        about = received(told)
        digest = sha256(told.envelope).hexdigest()
        prepared = None
        if prepare is not None:
            [prepared] = prepare([Arrived(told.event, about, told.envelope, digest)])
            if isinstance(prepared, Exception):
                raise prepared
        reference = f"operations_projector@operations@{self.version}:{told.event_id}"
        common = {"operations_projection_applied_receipt_ref": reference}
        with self._connection.transaction():
            handler(self._connection, told.event, Deciding(about, told.envelope, digest, MOMENT, prepared, common))
        self._reached[about.aggregate.kind, about.aggregate.id] = about.aggregate.revision

    def fold(self, events: Iterable[Told]) -> None:
        """Apply events as they come; one whose aggregate lacks a revision waits for it."""
        waiting: list[Told] = []
        for told in events:
            waiting.append(told)
            while ready := next((one for one in waiting if self._is_next(one)), None):
                self.apply(ready)
                waiting.remove(ready)
        assert not waiting, "a revision never came"

    def _is_next(self, told: Told) -> bool:
        aggregate = received(told).aggregate
        key = (aggregate.kind, aggregate.id)
        return self._reached.get(key, 0) + 1 == aggregate.revision
