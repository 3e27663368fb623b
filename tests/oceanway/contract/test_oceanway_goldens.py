"""The published vectors of OceanWay's contracts, and what other languages read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oceanway.contracts.published import CONTRACTS
from seapost.contracts.goldens import read_goldens, verify_goldens
from seapost.contracts.schema_export import export_json_schema
from seapost.contracts.typescript_export import export_typescript
from tests.kit.oceanway.goldens import FOLDER, documents

GOLDENS = list(read_goldens(FOLDER))


@pytest.mark.req("REF-03", "SET-15")
def test_this_release_agrees_with_every_vector() -> None:
    """Raw text gives the published bytes and digest, in the kernel's golden form."""
    results = verify_goldens(FOLDER, CONTRACTS)
    assert [result for result in results if result.problem is not None] == []
    assert len(results) == len(list(FOLDER.rglob("*.json")))


@pytest.mark.req("REF-03")
def test_every_contract_and_every_event_has_a_vector() -> None:
    """No contract and no payload is published without a vector, and none of the vectors is left over."""
    published = {(golden.title, golden.case): golden.fields["canonicalBytesHex"] for golden in GOLDENS}
    made = {(title, case): covered.hex() for title, case, _, covered in documents()}
    assert published == made
    assert {entry.title for entry in CONTRACTS.contracts} == {title for title, _ in published}
    events = {case for title, case in published if title == "CanonicalEventEnvelope@1"}
    assert events == {event.event_type for event in CONTRACTS.events}


@pytest.mark.req("REF-03")
def test_schemas_and_types_are_exported_for_everything(tmp_path: Path) -> None:
    """One closed JSON Schema for each contract and payload, and one TypeScript module."""
    written = export_json_schema(tmp_path, CONTRACTS)
    assert len(written) == len(CONTRACTS.contracts) + len(CONTRACTS.events)
    for path in written:
        schema = json.loads(path.read_text(encoding="utf-8"))
        assert schema["additionalProperties"] is False, path.name
        assert all(
            part["additionalProperties"] is False
            for part in schema.get("$defs", {}).values()
            if "type" in part and part["type"] == "object"
        )
    module = export_typescript(tmp_path, CONTRACTS).read_text(encoding="utf-8")
    assert all(entry.name in module for entry in CONTRACTS.contracts)
