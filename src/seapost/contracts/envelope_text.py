"""The usual envelope, read by the shape of its canonical text, without building the document.

Names in a canonical text are sorted, so the payload stands between a head and a tail whose every character two
expressions can judge; the payload itself is judged by `canonical.read_plain`. Head, a canonical object, tail: together
that is one canonical text, and the only way to read it.

Nothing is refused here. A text with any rarer feature (an identifier outside printable ASCII, an escape, a fraction, a
revision of sixteen digits, a defect) is left to the exact reader in `envelope`; a property test holds the two to one
result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Final

from seapost.contracts.canonical import DEFAULT_LIMITS, read_plain
from seapost.contracts.examination import JSONValue, Limits

HEAD_VALUES: Final = 30
"""More values and objects than an envelope has around its payload."""

_IDENTIFIER: Final = r"(?! )[ !#-\[\]-~]{1,200}(?<! )"
_KIND: Final = r"[a-z][a-z0-9_.-]{0,199}"
_NAME: Final = r"[a-z][a-z0-9_.-]{0,99}"
_TRACEPARENT: Final = r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_EVENT_ID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_VERSION: Final = r'(?=[0-9.]{1,32}")[0-9]+(?:\.[0-9]+)*'
_EVENT_TYPE: Final = r'(?=[^"]{1,200}")[a-z][a-z0-9._-]*(?:@[0-9]+(?:\.[0-9]+)*)?'
_DATE_LENGTH: Final = len("2026-03-29")
_MOMENT: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
CACHE_MAX: Final = 4_096

_HEAD: Final = re.compile(
    rf'\{{"aggregate":\{{"id":"(?P<key>{_IDENTIFIER})","kind":"(?P<kind>{_KIND})","revision":(?P<revision>[1-9][0-9]{{0,14}})\}},'
    rf'"correlation":\{{(?:"causationId":"(?P<causation>{_IDENTIFIER})",)?"correlationId":"(?P<correlation>{_IDENTIFIER})"'
    rf'(?:,"operationId":"(?P<operation>{_IDENTIFIER})")?(?:,"traceparent":"(?P<trace>{_TRACEPARENT})")?\}},'
    rf'"eventId":"(?P<id>{_EVENT_ID})","eventSchemaVersion":"(?P<version>{_VERSION})",'
    rf'"eventType":"(?P<type>{_EVENT_TYPE})","occurredAt":"(?P<moment>{_MOMENT})","payload":'.encode()
)
_TAIL_START: Final = b',"producer":"'
_TAIL: Final = re.compile(
    rf',"producer":"({_NAME})","tenant":\{{(?:"projectId":"({_IDENTIFIER})",)?"tenantId":"({_IDENTIFIER})",'
    rf'"tenantKind":"(organization|user)","workspaceId":"({_IDENTIFIER})"\}}\}}'.encode()
)
_PAYLOAD_LIMITS: Final = Limits(
    bytes_max=DEFAULT_LIMITS.bytes_max,
    depth_max=DEFAULT_LIMITS.depth_max - 1,
    items_max=DEFAULT_LIMITS.items_max - HEAD_VALUES,
    string_max=DEFAULT_LIMITS.string_max,
)


@dataclass(slots=True)
class EnvelopeText:
    """An envelope known to be canonical and legal, with what every consumer needs of it.

    Attributes:
        event_id: in canonical spelling.
        payload_text: the canonical bytes of `payload`.
        head, tail: what was recognised before and after the payload; None when the exact reader read it.
    """

    text: bytes
    event_id: str
    event_type: str
    event_schema_version: str
    traceparent: str | None
    payload: dict[str, JSONValue]
    payload_text: bytes
    head: re.Match[bytes] | None
    tail: re.Match[bytes] | None


@dataclass(frozen=True, slots=True)
class Around:
    """The fields of a recognised envelope that only some consumers ask for."""

    aggregate_id: str
    aggregate_kind: str
    aggregate_revision: int
    causation_id: str | None
    correlation_id: str
    operation_id: str | None
    producer: str
    project_id: str | None
    tenant_id: str
    tenant_kind: str
    workspace_id: str
    occurred_at: datetime


def scan_envelope(text: bytes) -> EnvelopeText | None:
    """Read the usual envelope; None says only that the exact reader must judge it."""
    head = _HEAD.match(text)
    if head is None or len(text) > DEFAULT_LIMITS.bytes_max:
        return None
    end = text.rfind(_TAIL_START)
    tail = _read_tail(text[end:]) if end > 0 else None
    if tail is None:
        return None
    event_id, version, event_type, traceparent, moment = head.group("id", "version", "type", "trace", "moment")
    if not _is_date(moment[:_DATE_LENGTH]):
        return None
    payload_text = text[head.end() : end]
    payload = read_plain(payload_text, _PAYLOAD_LIMITS)
    if type(payload) is not dict:
        return None
    return EnvelopeText(
        text,
        event_id.decode(),
        event_type.decode(),
        version.decode(),
        None if traceparent is None else traceparent.decode(),
        payload,
        payload_text,
        head,
        tail,
    )


def around(head: re.Match[bytes], tail: re.Match[bytes]) -> Around:
    """The fields before and after the payload."""
    texts = {name: None if part is None else part.decode() for name, part in head.groupdict().items()}
    producer, project_id, tenant_id, tenant_kind, workspace_id = tail.groups()
    return Around(
        aggregate_id=head["key"].decode(),
        aggregate_kind=head["kind"].decode(),
        aggregate_revision=int(head["revision"]),
        causation_id=texts["causation"],
        correlation_id=head["correlation"].decode(),
        operation_id=texts["operation"],
        producer=producer.decode(),
        project_id=None if project_id is None else project_id.decode(),
        tenant_id=tenant_id.decode(),
        tenant_kind=tenant_kind.decode(),
        workspace_id=workspace_id.decode(),
        occurred_at=datetime.fromisoformat(head["moment"].decode()),
    )


@lru_cache(maxsize=CACHE_MAX)  # the events of one tenant share it
def _read_tail(text: bytes) -> re.Match[bytes] | None:
    return _TAIL.fullmatch(text)


@lru_cache(maxsize=CACHE_MAX)
def _is_date(text: bytes) -> bool:
    """Whether the digits are a date that exists."""
    try:
        _ = date.fromisoformat(text.decode())
    except ValueError:
        return False
    return True
