"""The OpenAPI description of the receiver, written from the same contracts that read the requests."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from seapost.inbox.read import ReceiptReadRequest, ReceiptReadResult
from seapost.server.problems import MEDIA_TYPE, Problem
from seapost.transport import wire

_REF: Final = "#/components/schemas/{model}"

_PROBLEMS: Final = {
    "400": "The body is no request of this protocol",
    "401": "The workload token is missing or not valid",
    "403": "The workload token is for another call",
    "404": "This receiver has no such consumer",
    "408": "The body did not arrive in time",
    "413": "The body is larger than this receiver takes",
    "415": "The body is not application/json",
    "500": "The receiver failed; the reference names a log record",
    "503": "The receiver is busy; `Retry-After` says when to come back",
    "504": "The consumer did not finish in time",
}

_CALLS: Final[tuple[tuple[str, type[BaseModel], type[BaseModel], str], ...]] = (
    (
        wire.PATH,
        wire.WireRequest,
        wire.WireResponse,
        "Take a batch of deliveries: one result for each, in the order of the request.",
    ),
    (
        wire.RECEIPT_PATH,
        ReceiptReadRequest,
        ReceiptReadResult,
        "Read one receipt by its complete identity. There is no list and no latest.",
    ),
)


def describe(app: FastAPI) -> None:
    """Make the application answer `/openapi.json` with the complete description."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    models: list[type[BaseModel]] = [Problem]
    for path, request, response, summary in _CALLS:
        models += [request, response]
        operation: dict[str, Any] = document["paths"][path]["post"]
        operation["summary"] = summary
        operation["security"] = [{"workloadToken": []}]
        operation["requestBody"] = {"required": True, "content": {wire.MEDIA_TYPE: {"schema": _reference(request)}}}
        operation["responses"] = {
            "200": {
                "description": "Complete; each result stands for itself",
                "content": {wire.MEDIA_TYPE: {"schema": _reference(response)}},
            },
            **_problems(_PROBLEMS),
        }
    ready: dict[str, Any] = document["paths"]["/readyz"]["get"]["responses"]
    ready.update(_problems({"503": "A database cannot be reached"}))
    document["paths"]["/metrics"]["get"]["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    _, definitions = models_json_schema([(model, "validation") for model in models], by_alias=True, ref_template=_REF)
    components: dict[str, Any] = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(definitions.get("$defs", {}))
    components["securitySchemes"] = {
        "workloadToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "Ed25519, at most 60 seconds; its bindings repeat the arguments of the call.",
        }
    }
    return document


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def _problems(texts: dict[str, str]) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": _reference(Problem)}}
    return {status: {"description": text, "content": content} for status, text in texts.items()}
