"""The published description of the HTTP interface, OpenAPI 3.1, made from the table of operations (GEN-10).

Bodies, answers and problems are the models that read and describe them; limits are in their schemas. Each status of an
operation names the codes that it may carry.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import groupby
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from orbit.model.codes import CODES, ErrorCode
from orbit.server.http.answering import ID_LENGTH_MAX, REPLAYED, REQUEST_ID
from orbit.server.http.headers import IDEMPOTENCY_KEY, KEY_PATTERN
from orbit.server.http.operations import OPERATIONS, Operation, Parameter
from orbit.wire.problems import MEDIA_TYPE, Problem

VERSION: Final = "1.0.0"
_REF: Final = "#/components/schemas/{model}"
_PATH_IDS: Final = ("subscription_id", "delivery_id", "task_id", "attempt_id")
_ABOUT: Final = """\
Tasks, their confirmed results, and durable subscriptions to those results.

Delivery is at least once, over the WebSocket protocol `orbit.events.v1` only: there is no claim and no acknowledgement
over HTTP. `task.needs_review` is neither success nor final failure; an authoritative result may follow.
`cursor_sequence` of a subscription says how far the journal was looked at, not what was acknowledged. A sequence of 0
means the journal from its beginning, which is when it was enabled, not the first task ever.

Bodies are JSON objects in UTF-8. Unknown and duplicate members are refused, and a number with a fraction or an exponent
is no integer. `null` counts as omitted where a member may be omitted, except for `result`. Errors are problem details
(RFC 9457); programs decide on `code` only.

A request that changes something carries an `Idempotency-Key`; repeated with the same key and body, after a lost answer
for instance, it returns the first answer and changes nothing."""


@cache
def document_text() -> str:
    """The document as it is served."""
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":"))


def published_text() -> str:
    """The document as it is committed."""
    return json.dumps(document(), ensure_ascii=False, indent=2) + "\n"


def document() -> dict[str, Any]:
    """The document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Orbit", "version": VERSION, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": _schemas(),
            "headers": _HEADERS,
            "responses": {name: _refusal(codes) for codes, name in _shared_refusals().items()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "orbit_ and 43 base64url characters",
                    "description": "In the header only; a token in the address is refused.",
                }
            },
        },
    }


_HEADERS: Final[dict[str, Any]] = {
    REQUEST_ID: {
        "description": "names the request in logs",
        "required": True,
        "schema": {"type": "string", "pattern": "^req_[0-9a-f]{32}$"},
    },
    REPLAYED: {
        "description": "present when an earlier request with the same key and body was answered before",
        "schema": {"const": "true"},
    },
    "Location": {"description": "where what was made is read", "required": True, "schema": {"type": "string"}},
    "WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}},
    "Retry-After": {"description": "seconds", "required": True, "schema": {"type": "integer", "minimum": 1}},
}


def _schemas() -> dict[str, Any]:
    models: list[type[BaseModel]] = [Problem]
    for operation in OPERATIONS:
        models += [model for model in (operation.body, operation.answer) if model is not None]
    unique = list(dict.fromkeys(models))
    _, definitions = models_json_schema([(model, "validation") for model in unique], ref_template=_REF)
    schemas: dict[str, Any] = {name: _plain(schema) for name, schema in sorted(definitions["$defs"].items())}
    for operation in OPERATIONS:
        if operation.body is not None:
            schemas[operation.body.__name__]["x-bytes-max"] = operation.body.bytes_max
    return schemas


def _plain(schema: Any) -> Any:  # noqa: ANN401 - a JSON Schema is any JSON
    """Without the titles that repeat names; members called `title` stay."""
    if isinstance(schema, list):
        return [_plain(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {member: _plain(inner) for member, inner in value.items()} if name == "properties" else _plain(value)
        for name, value in cast("dict[str, Any]", schema).items()
        if name != "title" and not (name == "default" and value is None)
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *_key(operation), *map(_query_parameter, operation.query)],
        "responses": _responses(operation),
    }
    if operation.action is not None:
        described["description"] = f"Needs the action `{operation.action}`."
        described["security"] = [{"token": []}]
    if operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "description": f"At most {operation.body.bytes_max} bytes.",
            "content": {"application/json": {"schema": _reference(operation.body)}},
        }
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": ID_LENGTH_MAX, "pattern": "^[A-Za-z0-9_]+$"}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in _PATH_IDS
        if f"{{{name}}}" in operation.path
    ]


def _key(operation: Operation) -> list[dict[str, Any]]:
    if not operation.keyed:
        return []
    schema = {"type": "string", "pattern": KEY_PATTERN}
    return [{"name": IDEMPOTENCY_KEY, "in": "header", "required": True, "schema": schema}]


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    described = {"name": parameter.name, "in": "query", "description": parameter.summary, "schema": parameter.schema}
    return {**described, "style": "form", "explode": True} if parameter.repeatable else described


def _responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {str(operation.status): _success(operation)}
    shared = _shared_refusals()
    for codes in _refusals(operation):
        found[str(CODES[codes[0]].status)] = (
            {"$ref": f"#/components/responses/{shared[codes]}"} if codes in shared else _refusal(codes)
        )
    return found


def _refusals(operation: Operation) -> list[tuple[ErrorCode, ...]]:
    """The codes of an operation, those of one status together."""
    return [tuple(codes) for _, codes in groupby(operation.problems, key=lambda code: CODES[code].status)]


@cache
def _shared_refusals() -> dict[tuple[ErrorCode, ...], str]:
    """The refusals that several operations have, and the names of their descriptions."""
    uses = Counter(codes for operation in OPERATIONS for codes in _refusals(operation))
    names: dict[tuple[ErrorCode, ...], str] = {}
    numbers: Counter[int] = Counter()
    for codes in sorted(codes for codes, times in uses.items() if times > 1):
        status = CODES[codes[0]].status or 0
        numbers[status] += 1
        names[codes] = f"Problem{status}" if numbers[status] == 1 else f"Problem{status}_{numbers[status]}"
    return names


def _success(operation: Operation) -> dict[str, Any]:
    headers = [REQUEST_ID]
    if operation.keyed:
        headers.append(REPLAYED)
    if operation.located is not None:
        headers.append("Location")
    if operation.answer is None:
        content = {"text/plain": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": _reference(operation.answer)}}
    return {"description": operation.summary, "headers": _header_references(headers), "content": content}


def _refusal(codes: tuple[ErrorCode, ...]) -> dict[str, Any]:
    headers = [REQUEST_ID]
    if ErrorCode.UNAUTHENTICATED in codes:
        headers.append("WWW-Authenticate")
    if {ErrorCode.SERVICE_BUSY, ErrorCode.SERVICE_NOT_READY}.intersection(codes):
        headers.append("Retry-After")
    lines = "\n".join(f"- `{code}`: {CODES[code].title}" for code in codes)
    return {
        "description": lines,
        "headers": _header_references(headers),
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "allOf": [_reference(Problem), {"properties": {"code": {"enum": [str(code) for code in codes]}}}]
                }
            }
        },
    }


def _header_references(names: list[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}
