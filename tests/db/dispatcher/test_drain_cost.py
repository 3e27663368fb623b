"""What a delivery costs, counted and not timed: round trips, digests, and documents built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from psycopg import _cursor_base, generators

from seapost.contracts import envelope, receipt_text, verification
from seapost.contracts.events import Event
from seapost.database.pool import open_pool
from seapost.dispatcher import deliver
from seapost.dispatcher.claim import Claimer
from seapost.dispatcher.context import Context
from seapost.dispatcher.deliver import Deliverer
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.renew import Leases
from seapost.dispatcher.settle import Settled, Settler
from seapost.inbox import examine
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving
from seapost.transport.inprocess import InProcessTransport
from tests.kit.builders import BILLING, PLACED, consumer_of
from tests.kit.database import TestDatabase
from tests.kit.dispatching import QUICK, open_context
from tests.kit.kernel import Kernel

EVENTS = 100


class Counting:
    """Counts calls of functions and methods while it stands in for them; each still does its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: Counter[str] = Counter()
        self._monkeypatch = monkeypatch

    def count(self, owner: object, name: str, what: str) -> None:
        """Count the calls of `owner.name` as `what`."""
        inner: Callable[..., Any] = getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - passes everything on
            self.numbers[what] += 1
            return inner(*arguments, **named)

        self._monkeypatch.setattr(owner, name, counted)


class Placed(Event, type=PLACED):
    """The event that the kernel's tests append, as this consumer reads it."""

    total: str


def quiet_inbox() -> Inbox:
    """An inbox whose handler has no effect of its own."""
    inbox = Inbox(consumer_of(BILLING), destination=BILLING)

    @inbox.consumer(Placed)
    async def apply(_transaction: object, _event: Placed) -> None:
        pass

    return inbox


async def drain(context: Context, claimer: Claimer, receiving: Receiving) -> Settled:
    """One batch by hand: claim, deliver in this process, settle."""
    batch = await claimer.run_once(EVENTS)
    assert batch is not None
    assert len(batch.claims) == EVENTS
    delivered = await Deliverer(context, QUICK, InProcessTransport(receiving.receive), Leases()).run_once(batch)
    return await Settler(context, QUICK, Pulse("lane", context.clock)).run_once(batch, delivered.outcomes)


async def test_a_delivery_costs_what_is_written_down(
    database: TestDatabase, lean_kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 100 takes six round trips and no exact reader; a delivery four digests and one model."""
    lean_kernel.append_new(PLACED, 2 * EVENTS)
    async with (
        open_context(database) as context,
        open_pool(database.dsn, part="inbox", role="seapost_consumer", size_max=1) as pool,
        Receiving(quiet_inbox(), pool) as receiving,
    ):
        claimer = Claimer(context, QUICK)
        first = await drain(context, claimer, receiving)  # learns members and registry, and that there are no suspects
        assert first == Settled(acknowledged=EVENTS)
        counting = Counting(monkeypatch)
        for module in (generators, _cursor_base):  # where psycopg sends and waits: for its own commands, and for ours
            counting.count(module, "execute", "round trips")
        for module in (deliver, examine, receipt_text, verification):
            counting.count(module, "sha256", "digests")
        counting.count(envelope, "read_exactly", "envelopes read exactly")
        counting.count(verification, "verify_by_contract", "receipts read by contract")
        counting.count(Placed, "_decode_value", "payloads read")
        assert await drain(context, claimer, receiving) == Settled(acknowledged=EVENTS)
    # claim, acknowledge; in the inbox: begin, receipts, the check that it is the same transaction, commit
    assert counting.numbers == Counter({"round trips": 6, "digests": 4 * EVENTS, "payloads read": EVENTS})
