"""What every loop of one dispatcher process shares."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from seapost.contracts.receipt_registry import ReceiptRegistry
from seapost.dispatcher.session import Connection, Pool, hang_up, session
from seapost.dispatcher.settings import DispatcherSettings
from seapost.dispatcher.stopping import Stopping
from seapost.model.delivery_set import Member
from seapost.telemetry.metrics import PROCESS, Metrics


def new_owner() -> str:
    """A fresh identity for each process start: a name that comes back would keep its predecessor alive (F15)."""
    return f"dispatcher-{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The database, the rules and the means of one dispatcher.

    Attributes:
        owner: who claims; written into each attempt, never used to decide anything.
        members: frozen delivery set members by their short name, shared by all destinations.
        in_use: connections that a call holds now.
        clock: local monotonic seconds, for durations only.
    """

    pool: Pool
    settings: DispatcherSettings
    receipts: ReceiptRegistry
    owner: str
    stopping: Stopping
    members: dict[int, Member] = field(default_factory=dict[int, Member])
    in_use: set[Connection] = field(default_factory=set[Connection])
    metrics: Metrics = PROCESS
    clock: Callable[[], float] = time.monotonic
    rng: random.Random = field(default_factory=random.Random)

    def session(self) -> AbstractAsyncContextManager[Connection]:
        """One connection for one call."""
        return session(self.pool, self.settings.database_seconds_max, self.in_use)

    async def hang_up(self, patience_seconds: float) -> None:
        """Cut the calls that a silent server keeps waiting, before anybody cancels them (F16)."""
        await hang_up(self.in_use, patience_seconds)
