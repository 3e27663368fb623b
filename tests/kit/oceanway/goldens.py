"""Writes the vectors of OceanWay's contracts that do not exist yet: `python -m tests.kit.oceanway.goldens`.

A published vector is never written again: what it says is the contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events import EVENTS
from oceanway.contracts.published import contracts
from oceanway.contracts.receipts.metering import MeteringInputProcessorConsumerReceipt
from oceanway.contracts.receipts.registry import RECEIPTS
from oceanway.contracts.release import application
from oceanway.contracts.subject import TenantFields
from seapost.contracts.ack import ack_bytes
from seapost.contracts.canonical import encode, parse
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.digest import sha256_hex
from seapost.contracts.envelope import Tenant
from tests.kit.oceanway.documents import EVENT_ID, valid, variants
from tests.kit.oceanway.lanes import COST_STATES, ELIGIBILITY_STATES, cost_lane, eligibility_lane
from tests.kit.tree import ROOT

if TYPE_CHECKING:
    from seapost.contracts.contract import StrictModel

FOLDER: Final = ROOT / "src" / "oceanway" / "contracts" / "goldens"
OCCURRED_AT: Final = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)

_OF_THE_KERNEL: Final = frozenset({"ActiveConsumerAck", "CanonicalEventEnvelope", "DeliverySetDefinition"})
_WITH_EVERY_BRANCH: Final = re.compile("Receipt$|Finished$|Blocked$|Decision$|Evidence$|Processing|Snapshot$|Fact$")


def documents() -> Iterator[tuple[str, str, bytes, bytes]]:
    """Title, case, canonical document and the bytes that its digest covers."""
    for entry in contracts().contracts:
        if entry.name in _OF_THE_KERNEL:
            continue
        for case, document in _cases(entry.name, entry.model):
            yield entry.title, case, document.canonical(), _covered(document)
    for event in EVENTS:
        payload = valid(event)
        tenant = None if isinstance(payload, TenantFields) else Tenant("organization", "t", "w")
        prepared = envelope_of(
            payload, correlation_id="run_id-1", event_id=UUID(EVENT_ID), occurred_at=OCCURRED_AT, tenant=tenant
        )
        yield "CanonicalEventEnvelope@1", event.event_type, prepared.envelope, prepared.envelope
    for kind in RECEIPTS:
        ack = ack_bytes(kind, valid(kind.model))
        yield "ActiveConsumerAck@1", kind.ack_kind, ack, ack
    definition = application().definition("1")
    yield "DeliverySetDefinition@1", "minimal", definition.canonical(), definition.candidate_bytes()


def write_missing() -> int:
    """Write the vectors that do not exist; returns how many."""
    written = 0
    for title, case, document, covered in documents():
        path = FOLDER / title / f"{case}.json"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        members = parse(document)
        assert isinstance(members, dict)
        raw = json.dumps(dict(reversed(members.items())), indent=1, ensure_ascii=False)
        fields = {"raw": raw, "canonicalBytesHex": covered.hex(), "digest": sha256_hex(covered)}
        _ = path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written += 1
    return written


def _cases(name: str, model: type[StrictModel]) -> Iterator[tuple[str, StrictModel]]:
    if issubclass(model, MeteringInputProcessorConsumerReceipt):
        lanes = [eligibility_lane(kind) for kind in ELIGIBILITY_STATES] + [cost_lane(kind) for kind in COST_STATES]
        for lane in lanes:
            state = type(lane.coordination_state).__name__
            branch = f"{lane.kind}-{state}".replace("_", "-").lower()
            yield branch, valid(model, lane=lane, outcome="already_observed")
    found = variants(model) if _WITH_EVERY_BRANCH.search(name) else iter([valid(model)])
    yield from ((f"case-{number:02}", document) for number, document in enumerate(found, start=1))


def _covered(document: StrictModel) -> bytes:
    return document.candidate_bytes() if isinstance(document, ContentAddressed) else encode(document.to_json())


if __name__ == "__main__":
    print(write_missing())  # noqa: T201 - a command
