"""Events and envelopes for tests, with made-up values where the test does not care."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from seapost.contracts.envelope import SINGLE_TENANT, Correlation, Tenant, build_envelope, new_event_id, read_envelope
from seapost.contracts.events import Event, EventPart
from seapost.inbox.received import Received
from seapost.model.errors import ContractError

MOMENT: Final = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)

EventT = TypeVar("EventT", bound=EventPart)


def build(event: type[EventT], **fields: object) -> EventT:
    """An event whose fields are those given, and plausible values of their types for all others.

    The same call builds the same event, but for identifiers of type `UUID`, which are fresh.

    Raises:
        ContractError: a made-up value would break a rule of the class, or its type is not known here; give the field.
    """
    missing = {
        name: _example(event, name, info.annotation)
        for name, info in event.model_fields.items()
        if name not in fields and info.is_required()
    }
    return event.model_validate({**missing, **fields})


def received(
    event: Event,
    *,
    key: str = "key-1",
    revision: int = 1,
    attempt_number: int = 1,
    tenant: Tenant = SINGLE_TENANT,
    correlation: Correlation | None = None,
    event_id: UUID | None = None,
) -> Received:
    """What a handler would be told about this event; for calling a handler directly."""
    prepared = build_envelope(
        event, key=key, revision=revision, tenant=tenant, producer=event.event_producer or "testing",
        correlation=correlation, occurred_at=MOMENT, event_id=event_id or new_event_id(),
    )  # fmt: skip
    return Received.of(read_envelope(prepared.envelope), attempt_number)


_SCALARS: Final[Mapping[Any, object]] = {
    int: 1,
    float: 1.0,
    bool: True,
    Decimal: Decimal(1),
    datetime: MOMENT,
    date: MOMENT.date(),
}


def _example(owner: type[EventPart], name: str, annotation: Any) -> object:  # noqa: ANN401 - any annotation
    origin, arguments = cast("object", get_origin(annotation)), get_args(annotation)
    if annotation is str:
        return f"{name}-1"
    if annotation is UUID:
        return new_event_id()
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if origin is Literal:
        return arguments[0]
    if origin is Union or origin is types.UnionType:
        return None if type(None) in arguments else _example(owner, name, arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, EventPart):
        return build(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return next(iter(annotation))
    kind = cast("object", annotation if origin is None else origin)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return ()
    if isinstance(kind, type) and issubclass(kind, Sequence | Mapping):
        return [] if issubclass(kind, Sequence) else {}
    message = f"No value can be made up for {owner.__name__}.{name}; give it"
    raise ContractError(message, pointer=f"/{name}", rule="no_example")
