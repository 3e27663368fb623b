"""JSON Schema 2020-12 for every published contract and event payload."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from pydantic.json_schema import GenerateJsonSchema

from seapost.contracts.contract_set import ContractSet, kernel_contracts

if TYPE_CHECKING:
    from pathlib import Path

    from seapost.contracts.contract import StrictModel


def json_schemas(contracts: ContractSet | None = None) -> dict[str, dict[str, Any]]:
    """The schemas by title: `Name@version` for contracts, `<event type>/<schema version>` for payloads."""
    known = kernel_contracts() if contracts is None else contracts
    schemas = {entry.title: json_schema(entry.model, entry.title) for entry in known.contracts}
    for event in known.events:
        title = f"{event.event_type}/{event.event_schema_version}"
        schemas[title] = json_schema(event, title)
    return schemas


def json_schema(model: type[StrictModel], title: str) -> dict[str, Any]:
    """The schema of one class, as a document of its own."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    _tidy(schema)
    return {"$schema": GenerateJsonSchema.schema_dialect, "$id": f"urn:seapost:contract:{title}", **schema}


def export_json_schema(directory: Path, contracts: ContractSet | None = None) -> list[Path]:
    """Write one `<title>.schema.json` for each contract and payload; returns the files written."""
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for title, schema in json_schemas(contracts).items():
        path = directory / f"{title.replace('/', '_')}.schema.json"
        _ = path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written


def _tidy(node: object) -> None:
    """Drop what says nothing, and say what a default hides: a constant is always on the wire."""
    if isinstance(node, list):
        for item in cast("list[object]", node):
            _tidy(item)
    if not isinstance(node, dict):
        return
    schema = cast("dict[str, Any]", node)
    fields: dict[str, dict[str, Any]] = schema.get("properties", {})
    for name, field in fields.items():
        _ = field.pop("title", None)  # made from the field's name
        if "default" not in field:
            continue
        if "const" in field:
            schema["required"] = [*schema.get("required", ()), name]
            del field["default"]
        elif field["default"] is None:  # absent, not null
            del field["default"]
    for name, child in schema.items():
        if name not in {"const", "enum", "default", "examples"}:
            _tidy(child)
