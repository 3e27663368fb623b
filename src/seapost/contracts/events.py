"""What applications write: one strict class for each event type, and the registry that reads them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from seapost.contracts.contract import StrictModel
from seapost.contracts.identifiers import (
    AGGREGATE_KIND_LENGTH_MAX,
    check_event_type,
    check_name,
    check_version,
)
from seapost.model.errors import ContractError, UnknownContract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seapost.contracts.examination import JSONValue


class EventPart(StrictModel):
    """A nested structure of an event's payload, as strict as the event itself."""


class Event(EventPart):
    """The payload of one event type.

    ```python
    class OrderPlaced(Event, type="order.placed@1", producer="shop", aggregate="order"):
        order_id: str
        total: Decimal
    ```

    Class keywords:
        type: the event type, an exact literal; a class without one is only a base for others.
        version: the schema version, a string; by default what follows `@` in the type, else `1`.
        producer: who appends it; may be left to the application.
        aggregate: kind of the thing it is about; by default the part of the type before its last point.

    Raises:
        ContractError: a class keyword breaks its rule.
        TypeError: a nested structure is not an `EventPart`.
    """

    event_type: ClassVar[str]
    event_schema_version: ClassVar[str]
    event_producer: ClassVar[str | None]
    aggregate_kind: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the class keywords away from `object`, which knows none."""
        for keyword in ("type", "version", "producer", "aggregate"):
            kwargs.pop(keyword, None)
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        type: str | None = None,  # noqa: A002 - reads as the sentence it is
        version: str | None = None,
        producer: str | None = None,
        aggregate: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if type is None:
            return
        name, _, suffix = check_event_type(type, "/type").partition("@")
        cls.event_type = type
        cls.event_schema_version = check_version(version or suffix or "1", "/version")
        cls.event_producer = None if producer is None else check_name(producer, "/producer")
        kind = aggregate or name.rpartition(".")[0] or name
        cls.aggregate_kind = check_name(kind, "/aggregate", AGGREGATE_KIND_LENGTH_MAX)

    @classmethod
    def decode_canonical(cls, payload: dict[str, JSONValue], text: bytes) -> Self:
        """Read a payload whose canonical text is known, as `decode` does without writing that text again.

        Raises:
            ContractError: the payload breaks this class, with the pointer and rule of the first problem.
        """
        return cls._decode_value(payload, text)


class EventRegistry:
    """The event classes an application knows, found by the exact pair of type and schema version (SET-39)."""

    def __init__(self, *events: type[Event]) -> None:
        self._classes: dict[tuple[str, str], type[Event]] = {}
        for event in events:
            _ = self.register(event)

    def register(self, event: type[Event]) -> type[Event]:
        """Add a class; registering the same class again changes nothing.

        Raises:
            ContractError: another class already has this pair, or the class has no event type.
        """
        if not hasattr(event, "event_type"):
            message = f'{event.__name__} has no event type; write class {event.__name__}(Event, type="...")'
            raise ContractError(message, rule="event_type")
        event.ensure_strict()
        pair = (event.event_type, event.event_schema_version)
        known = self._classes.setdefault(pair, event)
        if known is not event:
            message = f"{event.__name__} and {known.__name__} have one event type and schema version: {pair}"
            raise ContractError(message, rule="registered_twice")
        return event

    def get(self, event_type: str, schema_version: str) -> type[Event]:
        """The class of an exact pair.

        Raises:
            UnknownContract: there is none; a similar name is never tried.
        """
        try:
            return self._classes[event_type, schema_version]
        except KeyError:
            message = f"No event {event_type} with schema version {schema_version} is registered"
            raise UnknownContract(message, pointer="/eventType", rule="unknown_event") from None

    def decode(self, event_type: str, schema_version: str, payload: dict[str, JSONValue]) -> Event:
        """Read a payload by its exact pair.

        Raises:
            UnknownContract: the pair is not registered.
            ContractError: the payload breaks the class, with the pointer inside the payload.
        """
        return self.get(event_type, schema_version).decode(payload)

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Whether the exact pair of event type and schema version is registered."""
        return pair in self._classes

    def __iter__(self) -> Iterator[type[Event]]:
        """The classes, sorted by type and schema version."""
        return iter([self._classes[pair] for pair in sorted(self._classes)])

    def __len__(self) -> int:
        """How many classes are registered."""
        return len(self._classes)
