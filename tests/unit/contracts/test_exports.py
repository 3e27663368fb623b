"""JSON Schema and TypeScript come from the same classes that read and write the documents."""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from seapost.contracts.contract_set import ContractSet, Published, kernel_contracts
from seapost.contracts.digest import sha256_hex
from seapost.contracts.events import Event, EventPart
from seapost.contracts.schema_export import export_json_schema, json_schemas
from seapost.contracts.typescript_export import export_typescript, typescript_module
from tests.kit.contracts import OrderPlaced, receipt_registry


class Item(EventPart):
    """A nested structure."""

    sku: str
    price: Decimal


class BasketChanged(Event, type="basket.changed@2.0"):
    """Every kind of field that the exports must render."""

    items: list[Item]
    at: datetime | None = None
    labels: dict[str, str] | None = None
    pair: tuple[int, str] | None = None


def _contracts() -> ContractSet:
    return kernel_contracts(receipt_registry(), events=[OrderPlaced, BasketChanged])


def _objects(schema: object) -> list[dict[str, Any]]:
    """Every object schema with named properties, wherever it stands."""
    if isinstance(schema, list):
        return [found for item in cast("list[object]", schema) for found in _objects(item)]
    if not isinstance(schema, dict):
        return []
    node = cast("dict[str, Any]", schema)
    inner = [found for item in node.values() for found in _objects(item)]
    return [node, *inner] if "properties" in node else inner


@pytest.mark.req("SET-01", "REF-03")
def test_every_published_structure_is_closed_in_json_schema() -> None:
    """Each contract and payload has a schema of the 2020-12 dialect in which no object takes unknown fields."""
    schemas = json_schemas(_contracts())
    assert list(schemas) == [
        "ActiveConsumerAck@1",
        "CanonicalEventEnvelope@1",
        "ConsumerReceipt@1",
        "DeliverySetDefinition@1",
        "ProjectionAppliedReceipt@1",
        "SearchReceipt@1",
        "basket.changed@2.0/2.0",
        "order.placed@1/1",
    ]
    for title, schema in schemas.items():
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["$id"].endswith(title)
        assert all(node["additionalProperties"] is False for node in _objects(schema))


@pytest.mark.req("SET-01", "REF-02")
def test_a_field_is_optional_in_the_schema_exactly_when_it_may_be_absent() -> None:
    """An optional field is not required and takes no null; a constant tag is required."""
    schemas = json_schemas(_contracts())
    basket = schemas["basket.changed@2.0/2.0"]
    assert basket["required"] == ["items"]
    assert basket["properties"]["at"]["type"] == "string"
    assert "null" not in json.dumps(basket)
    tags = [node for node in _objects(schemas["DeliverySetDefinition@1"]) if "state" in node["properties"]]
    assert len(tags) == 2
    assert all("state" in node["required"] for node in tags)


@pytest.mark.req("REF-03")
def test_the_schema_carries_the_spelling_rules() -> None:
    """A decimal is a string with a pattern, never a number; a moment has the pattern with a zone."""
    basket = json_schemas(_contracts())["basket.changed@2.0/2.0"]
    price = basket["$defs"]["Item"]["properties"]["price"]
    assert price["type"] == "string"
    assert re.match(price["pattern"], "19.90")
    assert not re.match(basket["properties"]["at"]["pattern"], "2026-03-29T02:30:00")


@pytest.mark.req("SET-01", "REF-03")
def test_the_exported_files_say_the_same_as_the_classes(tmp_path: Path) -> None:
    """One schema file for each title; exporting twice gives the same bytes."""
    written = export_json_schema(tmp_path, _contracts())
    assert sorted(path.name for path in written) == sorted(path.name for path in tmp_path.iterdir())
    assert json.loads((tmp_path / "order.placed@1_1.schema.json").read_text(encoding="utf-8"))["title"] == "OrderPlaced"
    before = [sha256_hex(path.read_bytes()) for path in written]
    assert [sha256_hex(path.read_bytes()) for path in export_json_schema(tmp_path, _contracts())] == before


@pytest.mark.req("SET-01", "DLV-06", "REF-03")
def test_typescript_has_closed_unions(tmp_path: Path) -> None:
    """The acknowledgement is a union over the registered kinds, the events one over the exact pairs."""
    text = export_typescript(tmp_path, _contracts()).read_text(encoding="utf-8")
    union = "AppliedConsumerReceipt | AppliedProjectionAppliedReceipt | AppliedSearchReceipt"
    [line] = [line for line in text.splitlines() if "readonly appliedReceipt:" in line]
    assert " ".join(line.split()).endswith(f"appliedReceipt: {union};"), line
    assert "readonly projectionTarget: NoProjectionTarget | RequiredProjectionTarget;" in text
    assert 'readonly tenantKind: "organization" | "user";' in text
    assert '{ readonly eventType: "basket.changed@2.0"; readonly eventSchemaVersion: "2.0";' in text
    assert "readonly items: ReadonlyArray<Item>;" in text
    assert "readonly at?: string;" in text
    assert "readonly price: string;" in text
    assert "readonly labels?: { [name: string]: string };" in text
    assert "readonly pair?: readonly [number, string];" in text
    assert "any" not in re.findall(
        r"[a-z]+", text.partition("export type ActiveConsumerAck")[2].replace("AnyEvent", "")
    )


@pytest.mark.req("REF-03")
def test_two_structures_of_one_name_are_kept_apart() -> None:
    """A nested structure whose name is taken carries its owner's name in front; nothing is overwritten."""
    twin: type[EventPart] = type(
        "Item", (EventPart,), {"__module__": __name__, "__annotations__": {"id": int}, "__doc__": "Another item."}
    )
    holder: type[Event] = type(
        "Shelf",
        (Event,),
        {"__module__": __name__, "__annotations__": {"item": twin}, "__doc__": "Holds it."},
        type="shelf.filled@1",
    )
    text = typescript_module(ContractSet("mine", (Published("Basket", "1", BasketChanged),), (holder,)))
    assert "export type Item = {\n  readonly sku" in text
    assert "export type ShelfFilledV1Item = {\n  readonly id: number" in text
    assert "readonly item: ShelfFilledV1Item;" in text
