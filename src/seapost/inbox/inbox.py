"""The consumer as its author writes it: a name, and one handler for each event it understands.

```python
inbox = seapost.Inbox("billing")


@inbox.consumer(OrderPlaced)
def bill(transaction, event):
    transaction.execute("insert into invoice ...", ...)
```

The effect of a handler and the receipt of its event are one transaction. A handler that returns has done
its work; it raises `Retry` to be asked again, `Reject` to send the event to quarantine, and anything else
counts as a failure to be retried. It never commits and never rolls back.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, Self, TypeVar, cast

from seapost.contracts.events import Event, EventRegistry
from seapost.contracts.identifiers import check_name
from seapost.inbox.drivers import AsyncTransactions, Transactions
from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptWriter
from seapost.inbox.received import Received
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import InvalidSetting

ARGUMENTS_MIN: Final = 2
ARGUMENTS_MAX: Final = 3

Function = TypeVar("Function", bound=Callable[..., object])


class Applied(Protocol):
    """What is being applied; `received` is put together only for a handler that wants it."""

    @property
    def received(self) -> Received:
        """The third argument of a handler."""
        ...


@dataclass(frozen=True, slots=True)
class Handler:
    """One registered handler; its colour decides which kind of connection it gets."""

    event: type[Event]
    function: Callable[..., object]
    is_async: bool
    wants_received: bool

    def call(self, transaction: object, event: Event, item: Applied) -> None:
        """Run a synchronous handler."""
        result = self._call(transaction, event, item)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise InvalidSetting("A synchronous handler returned an awaitable; declare it with `async def`.")

    async def call_async(self, transaction: object, event: Event, item: Applied) -> None:
        """Run an asynchronous handler."""
        await cast("Awaitable[object]", self._call(transaction, event, item))

    def _call(self, transaction: object, event: Event, item: Applied) -> object:
        if self.wants_received:
            return self.function(transaction, event, item.received)
        return self.function(transaction, event)


class Inbox:
    """A consumer.

    Args:
        name: consumer name, as in the delivery set; receipts are kept under it.
        destination: the destination it serves; its own name by default.
        receipts: writes the receipts; the kernel's `ConsumerReceipt@1` by default.
        transactions: opens the transactions of the handlers in another database library (`seapost.adapters`); by
            default they are psycopg's, from the pool of the inbox.

    Raises:
        ContractError: the name or destination breaks its rule.
    """

    def __init__(
        self,
        name: str,
        *,
        destination: str | None = None,
        receipts: ReceiptWriter | None = None,
        transactions: Transactions | AsyncTransactions | None = None,
    ) -> None:
        self.name = check_name(name, "/consumerName")
        self.destination = check_name(name if destination is None else destination, "/destination")
        self.receipts: ReceiptWriter = receipts or ConsumerReceiptWriter(self.name, self.destination)
        self.transactions = transactions
        self.key: str = self.name
        """What receipts are kept under: the name, unless several versions of a projection share it."""
        self.projection: ProjectionTarget | None = None
        """The one projection it applies; a delivery whose frozen member names another, or none, is not applied."""
        self._events = EventRegistry()
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._is_closed = False

    def consumer(self, event: type[Event]) -> Callable[[Function], Function]:
        """Decorator: the function handles exactly this event type and schema version (SET-39).

        A plain function gets a psycopg `Connection` and runs in a thread; an `async def` gets an
        `AsyncConnection`. With `transactions` of another library it gets what that one hands out, and is of its
        colour. Arguments: `(transaction, event)` or `(transaction, event, received)`.

        Raises:
            InvalidSetting: the event already has a handler, the function takes other arguments or is of another
                colour than the transactions, or the inbox has started.
        """

        def register(function: Function) -> Function:
            wants_async = isinstance(self.transactions, AsyncTransactions)
            if self.transactions is not None and wants_async is not is_async(function):
                kind = "`async def`" if wants_async else "plain functions"
                raise InvalidSetting(f"The handlers of the inbox {self.name} are {kind}, as its transactions are.")
            self._register(event, function)
            return function

        return register

    def _register(self, event: type[Event], function: Callable[..., object]) -> Handler:
        """Keep the handler of an event; raises as `consumer` does."""
        if self._is_closed:
            raise InvalidSetting("Handlers are registered before the inbox starts to receive.")
        pair = (event.event_type, event.event_schema_version)
        if pair in self._handlers:
            raise InvalidSetting(f"The inbox {self.name} already has a handler for {pair[0]} version {pair[1]}.")
        handler = Handler(
            event=event,
            function=function,
            is_async=is_async(function),
            wants_received=count_arguments(function) == ARGUMENTS_MAX,
        )
        self._events.register(event)
        self._handlers[pair] = handler
        return handler

    @property
    def events(self) -> EventRegistry:
        """The events with a handler, by exact type and schema version."""
        return self._events

    @property
    def handlers(self) -> Mapping[tuple[str, str], Handler]:
        """The handlers by exact pair of event type and schema version."""
        return MappingProxyType(self._handlers)

    def close(self) -> Self:
        """Refuse later registrations; what the inbox understands is fixed from here on (AMB-38)."""
        self._is_closed = True
        return self


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling it gives an awaitable."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - looks at an object's own call method, not whether it has one
    )


def count_arguments(function: Callable[..., object]) -> int:
    """How many arguments the handler is called with."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())
    taken = [parameter for parameter in parameters if parameter.kind in kinds]
    required = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    unexpected = [parameter for parameter in required if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    number = sum(1 for parameter in taken if parameter.default is inspect.Parameter.empty)
    if unexpected or not ARGUMENTS_MIN <= number <= ARGUMENTS_MAX:
        raise InvalidSetting("A handler takes (transaction, event) or (transaction, event, received).")
    return number
