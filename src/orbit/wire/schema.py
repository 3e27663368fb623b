"""The message schema of `orbit.events.v1` (section 25), generated from the models of the frames (GEN-10).

`frame_schema` gives what is published as `docs/schemas/orbit.events.v1.schema.json`. A test holds the file, these
models and the document of section 25 to each other.
"""

from __future__ import annotations

import json
from typing import Any, Final, cast, get_args

from pydantic import BaseModel, TypeAdapter

from orbit.wire.frames import CLIENT_FRAMES, SERVER_FRAMES, EventType, Id, Positive, Secret, Snapshot, Time

SCHEMA_ID: Final = "urn:orbit:schema:orbit.events.v1"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_NAMED_TYPES: Final[tuple[tuple[str, TypeAdapter[Any]], ...]] = (
    ("id", TypeAdapter(Id)),
    ("time", TypeAdapter(Time)),
    ("secret", TypeAdapter(Secret)),
    ("event_type", TypeAdapter(EventType)),
    ("positive", TypeAdapter(Positive)),
)
_DROPPED: Final = frozenset({"title", "description", "default"})


def frame_name(frame: type[BaseModel]) -> str:
    """The name of the message that a model stands for: what its member `type` says."""
    return str(get_args(frame.model_fields["type"].annotation)[0])


def frame_schema() -> dict[str, Any]:
    """The JSON Schema of every frame, both directions."""
    named = {name: _plain(type_.json_schema(), {}) for name, type_ in _NAMED_TYPES}
    definitions: dict[str, Any] = dict(named)
    for frame in CLIENT_FRAMES:
        definitions[frame_name(frame)] = _object(frame, named)
    definitions["hello_ok"] = _object(SERVER_FRAMES[0], named)
    definitions["snapshot"] = _object(Snapshot, named)
    for frame in SERVER_FRAMES[1:]:
        definitions[frame_name(frame)] = _object(frame, named)
    frames = (*CLIENT_FRAMES, *SERVER_FRAMES)
    return {
        "$schema": DIALECT,
        "$id": SCHEMA_ID,
        "oneOf": [{"$ref": f"#/$defs/{frame_name(frame)}"} for frame in frames],
        "$defs": definitions,
    }


def frame_schema_text() -> str:
    """The committed text of the schema."""
    return json.dumps(frame_schema(), indent=2, ensure_ascii=False) + "\n"


def _object(model: type[BaseModel], named: dict[str, Any]) -> dict[str, Any]:
    document = model.model_json_schema(ref_template="#/$defs/{model}")
    members = {name: _plain(member, named) for name, member in cast("dict[str, Any]", document["properties"]).items()}
    closed = {"additionalProperties": False} if model.model_config.get("extra") == "forbid" else {}
    return {"type": "object", **closed, "required": document["required"], "properties": members}


def _plain(schema: Any, named: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """The schema without what only people read, and with a reference wherever a named type stands."""
    if isinstance(schema, list):
        return [_plain(item, named) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    if "$ref" in members:
        return {"$ref": members["$ref"].replace("/Snapshot", "/snapshot")}
    plain = {key: _plain(value, named) for key, value in members.items() if key not in _DROPPED}
    if "const" in plain or "enum" in plain:
        plain.pop("type", None)
    for name, definition in named.items():
        if plain == definition:
            return {"$ref": f"#/$defs/{name}"}
    return plain or True
