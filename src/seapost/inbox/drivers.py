"""What another database library offers so that an inbox can live in its transactions; `seapost.adapters` has them.

The library's transaction carries both, the receipts and what the handlers do, so that one commit decides over both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from seapost.store.inbox import KnownReceipt, NewReceipt

Known = tuple[Mapping[UUID, KnownReceipt], datetime]
"""The receipts that were there before, by event, and the `committed_at` of the new ones."""


class Opened(Protocol):
    """One open transaction of a library that blocks."""

    @property
    def handed(self) -> Any:  # noqa: ANN401 - each library has its own
        """What a handler gets as its first argument."""
        ...

    def receive(self, consumer: str, receipts: Sequence[NewReceipt]) -> Known:
        """Write the receipts of new events; return the known ones by event, and `committed_at`."""
        ...

    def flush(self) -> None:
        """Send what the handler that just ended has left unsent; raises when it cannot be."""
        ...

    def committed_at(self) -> datetime:
        """The time that receipts written by this transaction carry; raises when the transaction is failed."""
        ...


class AsyncOpened(Protocol):
    """One open transaction of an asynchronous library; members as `Opened`."""

    @property
    def handed(self) -> Any:  # noqa: ANN401 - each library has its own
        """What a handler gets as its first argument."""
        ...

    async def receive(self, consumer: str, receipts: Sequence[NewReceipt]) -> Known:
        """Write the receipts of new events; return the known ones by event, and `committed_at`."""
        ...

    async def flush(self) -> None:
        """Send what the handler that just ended has left unsent; raises when it cannot be."""
        ...

    async def committed_at(self) -> datetime:
        """The time that receipts written by this transaction carry; raises when the transaction is failed."""
        ...


class Transactions(ABC):
    """Opens the transactions of an inbox whose handlers are plain functions."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """How many transactions may be open at a time, each in a thread of its own."""

    @abstractmethod
    def open(self) -> AbstractContextManager[Opened]:
        """Begin; commit at the end of the block, roll back when it raises. Raises unless the commit is certain."""

    @abstractmethod
    def close(self) -> None:
        """Give back what was kept for the next transaction; no thread is inside `open` any more."""


class AsyncTransactions(ABC):
    """Opens the transactions of an inbox whose handlers are `async def`."""

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[AsyncOpened]:
        """Begin; commit at the end of the block, roll back when it raises. Raises unless the commit is certain."""
