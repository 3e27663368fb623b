"""From a basis to facts: decision, meter events, and the settlement inputs that changed (REF-29, REF-32).

A dimension has changed when its quantity, its economic identity or the decision about it has. The first applied work
writes every charge dimension, with quantity `0` where nothing is billable, so that billing never waits for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events import SettlementInputCurrentChanged
from oceanway.contracts.facts.metering import EligibilityDecision, MeterEvent
from oceanway.contracts.facts.settlement import (
    SettlementEconomicIdentity,
    SettlementInputSnapshot,
    settlement_dimension_id,
)
from oceanway.contracts.identity import ALGORITHM, det
from oceanway.metering.documents import ATTEMPT, Document, Sealed, named, part, quad, seal
from oceanway.metering.outcomes import Applied, LocalConflict, Task

if TYPE_CHECKING:
    from oceanway.metering.eligibility import Basis

ZERO = "0"


def apply(task: Task, basis: Basis, receipts: Sequence[bytes], moment: str) -> Applied | LocalConflict:
    """Everything that an applied work writes, except finish and lane."""
    decision = seal(
        EligibilityDecision,
        {
            "eligibilityDecisionRef": det("eligibility_decision", task.ref),
            "basisDigestAlgorithmVersion": ALGORITHM,
            "basisDigest": basis.digest,
            "decision": basis.decision,
        },
    )
    made = Applied(decision, list(receipts), [], [], [])
    for dimension in task.manifest["chargeDimensions"]:
        metered = _meter(task, basis, decision, dimension)
        if isinstance(metered, LocalConflict):
            return metered
        if metered is not None:
            made.meter_events.append(metered)
        item = _settle(task, basis, dimension, metered, made, moment)
        made.items.append(item)
    return made


def _meter(task: Task, basis: Basis, decision: Sealed, dimension: Mapping[str, Any]) -> Sealed | LocalConflict | None:
    """The meter event of one charge dimension; None where nothing is billable."""
    if basis.decision["state"] != "billable":
        return None
    quantity, unit = basis.usage[dimension["usageDimensionKey"]]
    candidate = {
        "meterEventRef": det("meter_event", decision.quad.ref, dimension["chargeDimensionKey"]),
        "executionAttemptId": task.work["executionAttemptId"],
        "chargeDimensionKey": dimension["chargeDimensionKey"],
        "quantity": quantity,
        "unit": unit,
        **named("eligibilityDecision", decision.quad),
    }
    if unit != dimension["quantityUnit"]:
        return LocalConflict("meter_event", "unit_differs", candidate)
    return seal(MeterEvent, candidate)


def _settle(
    task: Task, basis: Basis, dimension: Mapping[str, Any], metered: Sealed | None, made: Applied, moment: str
) -> Document:
    """The item of one dimension after the commit, and its new snapshot where it changed."""
    quantity = ZERO if metered is None else str(metered.document["quantity"])
    economic = economic_identity(task.manifest, dimension)
    before = task.pointers.get(dimension["chargeDimensionKey"])
    if before is not None and _is_same(before, quantity, economic, basis.decision):
        return item_of(before["snapshot"])
    fields: Document = {
        **part(task.manifest, ATTEMPT),
        "settlementDimensionId": economic["settlementDimensionId"],
        "chargeDimensionKey": dimension["chargeDimensionKey"],
        "settlementEconomicIdentity": economic,
        **_predecessor(before),
        **named("eligibilityDecision", made.decision.quad),
        "meterEvents": [] if metered is None else [named("meterEvent", metered.quad)],
        "quantity": quantity,
        "createdAt": moment,
    }
    fields["settlementInputSnapshotRef"] = det(
        "settlement_input_snapshot", economic["settlementDimensionId"], fields["settlementInputStateVersion"]
    )
    snapshot = seal(SettlementInputSnapshot, fields)
    made.snapshots.append(snapshot)
    made.envelopes.append(event_of(snapshot.document, task.work))
    return item_of(snapshot.document)


def _is_same(before: Mapping[str, Any], quantity: str, economic: Document, decision: Document) -> bool:
    snapshot = before["snapshot"]
    return (
        snapshot["quantity"] == quantity
        and snapshot["settlementEconomicIdentity"] == economic
        and before["decision_state"] == decision["state"]
        and before["reason_code"] == decision.get("reasonCode")
    )


def _predecessor(before: Mapping[str, Any] | None) -> Document:
    if before is None:
        return {"settlementInputStateVersion": 1, "predecessor": {"state": "none"}}
    snapshot = before["snapshot"]
    return {
        "settlementInputStateVersion": snapshot["settlementInputStateVersion"] + 1,
        "predecessor": {
            "state": "present",
            **quad("settlementInputSnapshot", snapshot),
            "settlementInputStateVersion": snapshot["settlementInputStateVersion"],
        },
    }


def economic_identity(manifest: Mapping[str, Any], dimension: Mapping[str, Any]) -> Document:
    """What a dimension means in money, with its own digest (REF-33)."""
    identity = SettlementEconomicIdentity.of(
        settlement_dimension_id=settlement_dimension_id(
            manifest["billingReservationId"],
            manifest["runStepId"],
            manifest["executionAttemptId"],
            dimension["chargeDimensionKey"],
        ),
        charge_dimension_key=dimension["chargeDimensionKey"],
        quantity_unit=dimension["quantityUnit"],
        currency=dimension["currency"],
        price_book_ref=dimension["priceBookRef"],
        price_book_version=dimension["priceBookVersion"],
    )
    return identity.to_json()


def item_of(snapshot: Mapping[str, Any]) -> Document:
    """A snapshot as one item of `settlementInputSnapshots[]` (section 0.2)."""
    return {
        **part(snapshot, ("runStepId", "executionAttemptId", "chargeDimensionKey")),
        "ref": snapshot["settlementInputSnapshotRef"],
        "schemaVersion": snapshot["settlementInputSnapshotSchemaVersion"],
        "digestAlgorithmVersion": snapshot["settlementInputSnapshotDigestAlgorithmVersion"],
        "digest": snapshot["settlementInputSnapshotDigest"],
        "stateVersion": snapshot["settlementInputStateVersion"],
    }


def event_of(snapshot: Mapping[str, Any], work: Mapping[str, Any]) -> bytes:
    """The envelope that announces a snapshot, caused by the eligibility event of its work (APP-25)."""
    payload = SettlementInputCurrentChanged.decode(
        {
            **part(snapshot, ATTEMPT),
            "chargeDimensionKey": snapshot["chargeDimensionKey"],
            "settlementEconomicIdentity": snapshot["settlementEconomicIdentity"],
            **quad("settlementInputSnapshot", snapshot),
            "settlementInputStateVersion": snapshot["settlementInputStateVersion"],
            "predecessor": snapshot["predecessor"],
        }
    )
    prepared = envelope_of(
        payload,
        causation_id=work["laneTrigger"]["eligibility"]["sourceEventId"],
        operation_id=work["meteringInputWorkOperationId"],
        correlation_id=snapshot["runId"],
    )
    return prepared.envelope
