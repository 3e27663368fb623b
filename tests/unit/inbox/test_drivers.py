"""An inbox over another library: handlers have its colour, and when it is down that is no event's fault."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractAsyncContextManager, AbstractContextManager

import pytest

from seapost.contracts.events import Event
from seapost.inbox.borrowed import apply, apply_async
from seapost.inbox.drivers import AsyncOpened, AsyncTransactions, Opened, Transactions
from seapost.inbox.failures import UNREACHABLE, NotOpened, outcome_of
from seapost.inbox.inbox import Inbox
from seapost.model.errors import InvalidSetting
from seapost.model.outcome import ErrorCode, Retryable


class Counted(Event, type="test.counted@1", producer="tests"):
    """An event."""

    n: int


class Overloaded(Exception):
    """What a driver says when the server has too many clients."""

    sqlstate = "53300"


class Down(Transactions):
    """A library that cannot open a transaction."""

    @property
    def threads(self) -> int:
        """One."""
        return 1

    def open(self) -> AbstractContextManager[Opened]:
        """Fail."""
        raise Overloaded

    def close(self) -> None:
        """Nothing was kept."""


class AsyncDown(AsyncTransactions):
    """The same in the other colour."""

    def open(self) -> AbstractAsyncContextManager[AsyncOpened]:
        """Fail."""
        raise Overloaded


def blocking(_transaction: object, _event: Counted) -> None:
    """A handler."""


async def awaiting(_transaction: object, _event: Counted) -> None:
    """A handler."""


def test_handlers_have_the_colour_of_their_transactions() -> None:
    """A handler of the other colour is refused where it is registered."""
    Inbox("billing", transactions=Down()).consumer(Counted)(blocking)
    Inbox("billing", transactions=AsyncDown()).consumer(Counted)(awaiting)
    with pytest.raises(InvalidSetting, match="plain functions"):
        Inbox("billing", transactions=Down()).consumer(Counted)(awaiting)
    with pytest.raises(InvalidSetting, match="async def"):
        Inbox("billing", transactions=AsyncDown()).consumer(Counted)(blocking)


async def test_a_library_that_is_down_says_nothing_about_any_event() -> None:
    """The failure to open is told apart, so that no batch is split over it; the outcome follows the driver's code."""
    with pytest.raises(NotOpened) as failure:
        apply(Down(), Inbox("billing"), [])
    with pytest.raises(NotOpened):
        await apply_async(AsyncDown(), Inbox("billing"), [])

    assert NotOpened in UNREACHABLE
    assert outcome_of(failure.value, "r") == Retryable(ErrorCode.CAPACITY_PROTECTED, "r")


def test_seapost_itself_imports_none_of_the_libraries() -> None:
    """The extras are optional, so nothing but the adapters may need them."""
    code = (
        "import sys, seapost, seapost.cli.main, seapost.adapters; "
        "print({'sqlalchemy', 'asyncpg', 'django'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.strip() == "set()"
