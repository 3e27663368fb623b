"""What operations must show of a set of events, computed in memory from their envelopes alone.

For auditors: this shares nothing with the projector, neither code nor tables, and needs no order. It reads the payloads
as plain JSON, puts them into sets, and says what follows from the sets. `view_of` puts a queried operation into the
same form, so that the two can be compared.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

_OPENS: Final = "request_open"
_ELSEWHERE: Final = ("execution.", "gateway.", "metering.")
"""Event types that operations is not told of."""
View = dict[str, Any]


def fold(envelopes: Iterable[bytes]) -> dict[str, View]:
    """What must be shown of each run whose run event is among these canonical envelopes, by its identifier."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for envelope in envelopes:
        event = json.loads(envelope)
        runs[event["payload"].get("runId", "")].append(event)
    folded = {run_id: _run(events) for run_id, events in runs.items()}
    return {run_id: view for run_id, view in folded.items() if view is not None}


def view_of(operation: Mapping[str, Any]) -> View:
    """The same form from what a query for operators returned of one operation."""
    reservation, finalization = operation["reservation"], operation["finalization"]
    return {
        "reserved": None if reservation is None else Decimal(reservation["reservedAmount"]),
        "settled": None if finalization is None else Decimal(finalization["settledAmount"]),
        "dimensions": {
            one["settlementDimensionId"]: {
                "amount": Decimal(one["finalizedAmount"] or 0) + Decimal(one["adjustedAmount"]),
                "waived": Decimal(one["waivedAmount"]),
                "revision": one["stateRevision"],
                "exposure": Decimal(one["exposureAmount"]),
            }
            for one in operation["dimensions"]
        },
        "lateCases": {one["caseRef"]: one["state"] for one in operation["cases"]["lateSettlement"]},
        "finalizationCases": {one["caseRef"]: one["state"] for one in operation["cases"]["finalization"]},
        "events": sorted(one["eventId"] for one in operation["timeline"]),
    }


def _run(events: list[dict[str, Any]]) -> View | None:
    named: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in {event["eventId"]: event for event in events}.values():
        named[event["eventType"]].append(event)
    if not named["run.created@2.0"]:
        return None
    events_of_operations = [name for name in named if not name.startswith(_ELSEWHERE)]
    wallets, finals = named["wallet.reserved@2.0"], named["billing.finalization.committed@1"]
    steps = [
        event["payload"]
        for kind in ("billing.settlement-transition.committed@1", "billing.late-settlement-command-result.committed@1")
        for event in named[kind]
    ]
    finalized = [item for event in finals for item in event["payload"]["dimensions"]]
    return {
        "reserved": Decimal(wallets[0]["payload"]["reservedAmount"]) if wallets else None,
        "settled": Decimal(finals[0]["payload"]["settledAmount"]) if finals else None,
        "dimensions": _dimensions(finalized, steps),
        "lateCases": _late_cases(named, steps),
        "finalizationCases": _finalization_cases(named),
        "events": sorted(event["eventId"] for name in events_of_operations for event in named[name]),
    }


def _dimensions(finalized: list[dict[str, Any]], steps: list[dict[str, Any]]) -> dict[str, View]:
    amounts = {item["settlementDimensionId"]: Decimal(item["amount"]) for item in finalized}
    by_dimension: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for step in steps:
        by_dimension[_dimension(step)].append(step)
    return {
        dimension: {
            "amount": amounts.get(dimension, Decimal(0)) + _sum(by_dimension[dimension], "ledgerDelta"),
            "waived": _sum(by_dimension[dimension], "waivedDelta"),
            "revision": max((step["toRevision"] for step in by_dimension[dimension]), default=0),
            "exposure": _exposure(by_dimension[dimension]),
        }
        for dimension in {*amounts, *by_dimension}
    }


def _sum(steps: list[dict[str, Any]], name: str) -> Decimal:
    return sum((Decimal(step[name]) for step in steps), Decimal(0))


def _exposure(steps: list[dict[str, Any]]) -> Decimal:
    if not steps:
        return Decimal(0)
    last = max(steps, key=lambda step: step["toRevision"])
    return Decimal(last.get("exposure", {}).get("amount", "0"))


def _late_cases(named: Mapping[str, list[dict[str, Any]]], steps: list[dict[str, Any]]) -> dict[str, str]:
    asked = {event["payload"]["caseRef"] for event in named["billing.late-settlement-exposure.case-requested@1"]}
    ended = {
        event["payload"]["caseRef"]: (_dimension(event["payload"]), event["payload"]["toRevision"])
        for event in named["billing.case-resolution.applied@1"]
    }
    reached = {(_dimension(step), step["toRevision"]) for step in steps if step.get("kind") != _OPENS}
    return {
        case_ref: "open"
        if case_ref not in ended
        else "resolved"
        if case_ref in asked and ended[case_ref] in reached
        else "pending_resolution"
        for case_ref in {*asked, *ended}
    }


def _finalization_cases(named: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    asked = {
        event["payload"]["reconciliationGeneration"]: event["payload"]["reconciliationCaseRef"]
        for event in named["billing.finalization-reconciliation.case-requested@1"]
    }
    ended = {
        event["payload"]["reconciliationGeneration"]
        for event in named["billing.finalization-reconciliation-resolution.applied@1"]
    }
    first_open = next(generation for generation in range(1, len(ended) + 2) if generation not in ended)
    return {
        case_ref: "ended" if generation < first_open else "open" if generation == first_open else "pending_successor"
        for generation, case_ref in asked.items()
    }


def _dimension(payload: Mapping[str, Any]) -> str:
    return str(payload["settlementEconomicIdentity"]["settlementDimensionId"])
