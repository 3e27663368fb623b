"""Handlers are registered once, for exact events, with the arguments a handler takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from seapost.contracts.events import Event
from seapost.database.pool import open_pool
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving
from seapost.model.errors import ContractError, InvalidSetting
from tests.kit.consumer import Ordered, Paid


def two(transaction: object, event: object) -> None:
    """A handler with two arguments."""


def three(transaction: object, event: object, received: object) -> None:
    """A handler with three arguments."""


async def awaited(transaction: object, event: object) -> None:
    """An asynchronous handler."""


class AwaitedCall:
    """An object that can be called like an asynchronous handler."""

    async def __call__(self, transaction: object, event: object) -> None:
        """Handle nothing."""


@pytest.mark.req("SET-39")
def test_handler_is_found_by_the_exact_pair() -> None:
    """A handler serves its own type and version only, and the decorator gives the function back."""
    inbox = Inbox("billing")
    assert inbox.consumer(Ordered)(two) is two
    assert set(inbox.handlers) == {("order.placed@1", "1")}
    assert ("order.placed@1", "1.0") not in inbox.handlers


HANDLERS: list[tuple[Callable[..., object], bool, bool]] = [
    (two, False, False),
    (three, False, True),
    (awaited, True, False),
    (AwaitedCall(), True, False),
    (partial(three, received=None), False, False),
]


@pytest.mark.parametrize(("function", "is_async", "wants_received"), HANDLERS)
def test_colour_and_arguments_are_read_from_the_function(
    function: Callable[..., object], is_async: bool, wants_received: bool
) -> None:
    """Plain functions, coroutine functions, objects and partials are told apart when they are registered."""
    inbox = Inbox("billing")
    inbox.consumer(Paid)(function)
    (handler,) = inbox.handlers.values()
    assert (handler.is_async, handler.wants_received) == (is_async, wants_received)


def none() -> None:
    """Takes nothing."""


def one(transaction: object) -> None:
    """Takes too little."""


def four(transaction: object, event: object, received: object, more: object) -> None:
    """Takes too much."""


def named(transaction: object, event: object, *, needed: object) -> None:
    """Needs an argument by name."""


@pytest.mark.parametrize("function", [none, one, four, named])
def test_other_arguments_are_refused_at_once(function: Callable[..., object]) -> None:
    """A function that cannot be called as a handler is refused when it is registered."""
    with pytest.raises(InvalidSetting, match="A handler takes"):
        Inbox("billing").consumer(Ordered)(function)


def test_an_event_has_one_handler() -> None:
    """A second handler for an event, or a second class for its pair, is refused."""
    inbox = Inbox("billing")
    inbox.consumer(Ordered)(two)
    with pytest.raises(InvalidSetting, match="already has a handler"):
        inbox.consumer(Ordered)(three)

    class Alias(Event, type="order.placed@1"):
        """The same pair under another name."""

    with pytest.raises(InvalidSetting, match="already has a handler"):
        inbox.consumer(Alias)(two)


@pytest.mark.req("AMB-38")
def test_nothing_is_registered_after_the_start() -> None:
    """An inbox that receives is closed; and one with plain functions needs a synchronous pool."""
    pool = open_pool("host=127.0.0.1 port=1", part="inbox")
    inbox = Inbox("billing")
    Receiving(inbox, pool)
    with pytest.raises(InvalidSetting, match="before the inbox starts"):
        inbox.consumer(Ordered)(two)
    plain = Inbox("billing")
    plain.consumer(Ordered)(two)
    with pytest.raises(InvalidSetting, match="synchronous pool"):
        Receiving(plain, pool)


@pytest.mark.parametrize("name", ["", "Billing", "bill ing", "1", "ü", "a" * 101])
def test_names_keep_their_alphabet(name: str) -> None:
    """The names that become part of receipts are checked when the inbox is made."""
    with pytest.raises(ContractError):
        Inbox(name)
    with pytest.raises(ContractError):
        Inbox("billing", destination=name)


def test_sync_handler_that_returns_an_awaitable_is_an_error() -> None:
    """A plain function that hands back a coroutine has done nothing, and is not taken for done."""
    inbox = Inbox("billing")

    @inbox.consumer(Ordered)
    def forgetful(transaction: object, event: object) -> object:
        return awaited(transaction, event)

    (handler,) = inbox.handlers.values()
    with pytest.raises(InvalidSetting, match="async def"):
        handler.call(None, Ordered(do="x"), None)  # pyright: ignore[reportArgumentType]
