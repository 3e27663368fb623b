"""The page of the HTTP interface in the reference, made from the table of operations."""

from __future__ import annotations

from orbit.model.codes import CODES
from orbit.model.limits import BODY_BYTES_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, RESULT_BYTES_MAX, TASK_BODY_BYTES_MAX
from orbit.server.http.operations import OPERATIONS, Operation

_HEAD = f"""\
# Orbit over HTTP

This page is generated from the operations of the server. The complete description, with every schema, is the OpenAPI
3.1 document [`orbit.openapi.json`](../schemas/orbit.openapi.json); a running server gives it at `/openapi.json`.
Deliveries are claimed and acknowledged over the WebSocket only.

## Conventions

- `Authorization: Bearer <token>`. A token in the address is refused. The namespace and the application are those of the
  credential.
- Bodies are JSON objects in UTF-8 of at most {BODY_BYTES_MAX} bytes, those of tasks and results of at most
  {TASK_BODY_BYTES_MAX}. Unknown and duplicate members are refused; `1.0` and `1e2` are no integers; `null` counts as
  omitted, except for `result` and `input`, whose text is kept byte for byte, at most {RESULT_BYTES_MAX} bytes.
- Every answer has `Orbit-Request-Id`. Errors are problem details (RFC 9457); decide on `code` only.
- What changes something takes an `Idempotency-Key` of 1 to 128 visible ASCII characters. The same key with the same
  body returns the first answer, with `Idempotency-Replayed: true`; with another body it is `IDEMPOTENCY_CONFLICT`. A
  request that failed leaves the key unused. Workers need no key: an attempt has one receipt.
- Lists take `limit`, 1 to {PAGE_SIZE_MAX} and {PAGE_SIZE_DEFAULT} by default, and `cursor`, the `next_cursor` of the
  page before. A row that exists all the time appears exactly once.
- `503` comes with `Retry-After`; the request may be repeated with the same key.
- `cursor_sequence` of a subscription says how far the journal was looked at, not what was acknowledged.

## Operations

| Method and path | Action | Success | Codes of its own |
| --- | --- | --- | --- |
"""


def reference_page() -> str:
    """The page."""
    lines = [_row(operation) for operation in sorted(OPERATIONS, key=lambda one: (one.path, one.method))]
    codes = [
        f"| `{code}` | {facts.status} | {facts.title} |"
        for code, facts in sorted(CODES.items(), key=lambda item: (item[1].status or 0, item[0]))
        if facts.status is not None
    ]
    table = "\n## Codes\n\n| Code | Status | Meaning |\n| --- | --- | --- |\n"
    return _HEAD + "\n".join(lines) + "\n" + table + "\n".join(codes) + "\n"


def _row(operation: Operation) -> str:
    action = f"`{operation.action}`" if operation.action else "none"
    answer = f"{operation.status} {operation.answer.__name__}" if operation.answer else f"{operation.status} text"
    codes = ", ".join(f"`{code}`" for code in dict.fromkeys(operation.codes))
    path = operation.path + ("?" + "&".join(f"{one.name}=" for one in operation.query) if operation.query else "")
    return f"| `{operation.method} {path}` | {action} | {answer} | {codes} |"
