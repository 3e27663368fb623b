"""What strict means for every contract and event, beyond pydantic's own strict mode (F12).

Pydantic's strict mode still reads `"1700000000"` as a moment, `" 1"` as a decimal and a time without
zone as a time. The rules below close these doors on the JSON side. They are applied to the schema that
pydantic builds for a class, so that a nested list of optional moments is covered as well.

- An optional field that is absent is left out, in both directions; `null` in its place is refused (REF-02).
- A moment is an RFC 3339 string with a zone; dates, times, durations and decimals are strings in one form.
- A nested structure is itself a strict model: a plain model, dataclass, typed dict or named tuple brings its own,
  laxer rules and is refused when the class is made.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import GetJsonSchemaHandler

_Node: TypeAlias = "dict[str, Any]"

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ZONE: Final = r"(Z|[+-][0-9]{2}:[0-9]{2})"

_FORMS: Final[dict[str, tuple[str, str]]] = {
    "datetime": (f"{_DATE}T{_TIME}{_ZONE}", "an RFC 3339 time with a zone, such as 2026-03-29T02:30:00Z"),
    "date": (_DATE, "a date, such as 2026-03-29"),
    "time": (f"{_TIME}{_ZONE}?", "a time of day, such as 02:30:00"),
    "timedelta": (r"-?P[0-9YMWDTHS.]+", "an ISO 8601 duration, such as PT30S"),
    "decimal": (r"-?[0-9]+(\.[0-9]+)?(E[+-]?[0-9]+)?", 'a decimal number in a string, such as "19.90"'),
}

_FORMATS: Final = {"datetime": "date-time", "date": "date", "timedelta": "duration"}

_FOREIGN_STRUCTURES: Final = frozenset({"arguments", "call", "dataclass", "named-tuple", "typed-dict"})
_DESCENDED: Final = frozenset(
    {
        "schema",
        "fields",
        "items_schema",
        "values_schema",
        "keys_schema",
        "choices",
        "json_schema",
        "python_schema",
        "lax_schema",
        "strict_schema",
        "steps",
        "definitions",
    }
)


def tighten(schema: CoreSchema) -> CoreSchema:
    """The schema of one class with the rules above built in."""
    return _tightened(schema)


def foreign_structures(schema: CoreSchema, strict: type) -> Iterator[str]:
    """Names of structures in a complete schema that are not derived from `strict`."""
    for node in _nodes(schema):
        kind: str = node["type"]
        if kind in _FOREIGN_STRUCTURES or (kind == "model" and not issubclass(node["cls"], strict)):
            yield getattr(node.get("cls"), "__name__", kind)


def is_absent(value: object) -> bool:
    """Whether an optional field is left out of the document."""
    return value is None


def _tightened(part: Any) -> Any:  # noqa: ANN401 - core schemas are untyped trees of dicts, lists and tuples
    if isinstance(part, (list, tuple)):
        parts = cast("list[Any]", part)
        return type(parts)(_tightened(item) for item in parts)
    if not isinstance(part, dict):
        return part
    node = cast("_Node", part)
    if not isinstance(node.get("type"), str):  # the fields of a model, the choices of a tagged union: names to nodes
        return {name: _tightened(item) for name, item in node.items()}
    node = {name: _tightened(item) if name in _DESCENDED else item for name, item in node.items()}
    if node["type"] == "model-field":
        return _omittable(node)
    return _one_form(node) if node["type"] in _FORMS else node


def _omittable(field: _Node) -> _Node:
    """A field whose default is None refuses `null` in JSON, and is left out when it is None."""
    inner: _Node = field["schema"]
    if inner["type"] != "default" or inner.get("default", ...) is not None or inner["schema"]["type"] != "nullable":
        return field
    nullable = inner["schema"]
    either = core_schema.json_or_python_schema(json_schema=nullable["schema"], python_schema=nullable)
    return {**field, "schema": {**inner, "schema": either}, "serialization_exclude_if": is_absent}


def _one_form(node: _Node) -> CoreSchema:
    """A scalar that JSON carries as a string in one spelling."""
    kind: str = node["type"]
    pattern, form = _FORMS[kind]
    matches = re.compile(pattern, re.ASCII).fullmatch

    def spelled(value: object) -> object:
        if isinstance(value, str) and matches(value) is not None:
            return value
        raise PydanticCustomError("spelling", "This must be {form}", {"form": form})

    if kind == "datetime":
        node = {**node, "tz_constraint": "aware"}
    strict = cast("CoreSchema", node)
    # A function hands its result on as a Python value, where strict mode would want a finished object;
    # the spelling is already exact, so reading it laxly can convert nothing else.
    lax = cast("CoreSchema", {**node, "strict": False})
    published = {"pydantic_js_functions": [_published(kind, pattern)]}
    return core_schema.json_or_python_schema(
        json_schema=core_schema.no_info_before_validator_function(spelled, lax, metadata=published),
        python_schema=strict,
    )


def _published(kind: str, pattern: str) -> Callable[[CoreSchema, GetJsonSchemaHandler], dict[str, Any]]:
    """The same spelling in JSON Schema: a string with a pattern, and its format where there is a standard one."""
    schema: dict[str, Any] = {"type": "string", "pattern": f"^{pattern}$"}
    if kind in _FORMATS:
        schema["format"] = _FORMATS[kind]
    return lambda _schema, _handler: dict(schema)


def _nodes(part: object) -> Iterator[_Node]:
    """Every node of a schema, from the outside in."""
    if isinstance(part, (list, tuple)):
        for item in cast("list[object]", part):
            yield from _nodes(item)
    if not isinstance(part, dict):
        return
    node = cast("_Node", part)
    is_node = isinstance(node.get("type"), str)
    if is_node:
        yield node
    for name, child in node.items():
        if name in _DESCENDED or not is_node:
            yield from _nodes(child)
