"""Says stale words by the thousand, alone and beside live ones, and counts what is believed.

Two witnesses: the answer of each call, and after each call the tables themselves. Whatever else than the live claims of
a call has moved counts as accepted, whatever the call answered.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final
from uuid import UUID

from seapost.model.delivery import Claim
from tests.fencing.callers import Caller, open_callers
from tests.fencing.calls import Verb, accepted
from tests.fencing.stock import DESTINATIONS, Kind, Stock
from tests.kit.builders import SHIPPED
from tests.kit.clock import Clock
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel

LIVE_SHARE_MAX: Final = 0.1
ALONE_SHARE: Final = 0.5
"""Half of the calls carry one claim, the others a batch."""
LOST: Final = 40

Leases = dict[tuple[str, UUID], tuple[int, UUID, Any]]
ENDS: Final = {Verb.ACKNOWLEDGE: Kind.ACKNOWLEDGED, Verb.QUARANTINE: Kind.QUARANTINED, Verb.RETRY: Kind.RETRIED}

_LEASES: Final = "select destination, event_id, attempt_id, token, expires_at from seapost.delivery_lease"
_COUNTS: Final = """
select (select count(*) from seapost.delivery_attempt_finish), (select count(*) from seapost.delivery_ready),
       (select count(*) from seapost.delivery_acknowledgement), (select count(*) from seapost.delivery_quarantine)"""
_MOVES: Final = {
    Verb.ACKNOWLEDGE: (1, 0, 1, 0),
    Verb.RETRY: (1, 1, 0, 0),
    Verb.QUARANTINE: (1, 0, 0, 1),
    Verb.RENEW: (0, 0, 0, 0),
}
"""What one accepted word adds to `_COUNTS`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is said, and how.

    Attributes:
        operations: stale words to say at least.
        batch_max: claims in one call.
        verbs: what is said.
        stops: at the first stale word that is believed; for databases that are broken on purpose.
    """

    operations: int
    batch_max: int
    verbs: tuple[Verb, ...] = tuple(Verb)
    stops: bool = False


@dataclass(slots=True)
class Tally:
    """What was said and what was believed.

    Attributes:
        operations: stale words said.
        accepted: stale words believed.
        live: live words said.
        live_accepted: live words believed.
        kinds: stale words by verb, driver and kind.
    """

    operations: int = 0
    accepted: int = 0
    live: int = 0
    live_accepted: int = 0
    kinds: Counter[tuple[Verb, str, Kind]] = field(default_factory=Counter[tuple[Verb, str, Kind]])

    def __str__(self) -> str:
        return (
            f"evidence: operations={self.operations} accepted={self.accepted}"
            f" live={self.live} live_accepted={self.live_accepted}"
        )


class Campaign:
    """One run on one restored database."""

    def __init__(self, stock: Stock, callers: dict[str, Caller], plan: Plan) -> None:
        self.stock = stock
        self.callers = callers
        self.plan = plan
        self.tally = Tally()

    def run(self) -> Tally:
        """Let every driver say every verb in turn, in an order of chance."""
        turns = list(product(self.plan.verbs, self.callers))
        while True:
            self.stock.rng.shuffle(turns)
            for verb, driver in turns:
                if self.tally.operations >= self.plan.operations or (self.plan.stops and self.tally.accepted):
                    return self.tally
                self._call(verb, driver)
                self.stock.refill()

    def _call(self, verb: Verb, driver: str) -> None:
        rng = self.stock.rng
        destination = rng.choice(DESTINATIONS)
        size = 1 if rng.random() < ALONE_SHARE else rng.randint(1, self.plan.batch_max)
        live = self._live(destination, size)
        stale: list[Claim] = []
        while len(live) + len(stale) < size:
            if drawn := self.stock.draw(destination, live):
                self.tally.kinds[verb, driver, drawn[0]] += 1
                stale.append(drawn[1])
        claims = rng.sample([*live, *stale], size)
        leases, counts = self._leases(), self._counts()
        rows = self.callers[driver].say(verb, destination, claims)
        self._judge(verb, live, stale, accepted(verb, claims, rows))
        self._compare(verb, live, leases, counts)
        if verb in ENDS:
            self.stock.end(live, ENDS[verb])

    def _live(self, destination: str, size: int) -> list[Claim]:
        """Some live claims; a call for one may be the live one itself."""
        rng = self.stock.rng
        most = size * LIVE_SHARE_MAX
        number = int(rng.random() < LIVE_SHARE_MAX) if size == 1 else round(rng.uniform(0, most))
        return rng.sample(list(self.stock.live[destination].values()), number)

    def _judge(self, verb: Verb, live: Sequence[Claim], stale: Sequence[Claim], believed: Sequence[Claim]) -> None:
        """Count by the answer."""
        if verb is Verb.RENEW:
            events = {claim.fence.event_id for claim in live}
            right = sum(claim.fence.event_id in events for claim in believed)
        else:
            fences = {claim.fence for claim in live}
            right = sum(claim.fence in fences for claim in believed)
        self.tally.operations += len(stale)
        self.tally.live += len(live)
        self.tally.live_accepted += right
        self.tally.accepted += len(believed) - right

    def _compare(self, verb: Verb, live: Sequence[Claim], leases: Leases, counts: tuple[int, ...]) -> None:
        """Count by the tables."""
        mine = {(claim.destination, claim.fence.event_id) for claim in live}
        after = self._leases()
        moved = {key for key in leases.keys() | after.keys() if leases.get(key) != after.get(key)}
        expected = tuple(old + len(live) * more for old, more in zip(counts, _MOVES[verb], strict=True))
        wrong = len(moved - mine)
        self.tally.accepted += wrong or int(self._counts() != expected)

    def _leases(self) -> Leases:
        return {(row[0], row[1]): row[2:] for row in self.stock.kernel.rows(_LEASES)}

    def _counts(self) -> tuple[int, ...]:
        return self.stock.kernel.row(_COUNTS)


def restored(server: DatabaseServer, original: TestDatabase) -> tuple[TestDatabase, list[Claim]]:
    """Copy a database and go on with the original for a while: the copy, and the claims that it knows nothing of."""
    kernel = Kernel(original.connect(autocommit=True))
    kernel.route()
    kernel.append_new(SHIPPED, LOST)
    original.close()
    copy = server.copy(original)
    kernel = Kernel(original.connect(autocommit=True))
    return copy, [claim for name in DESTINATIONS for claim in kernel.claim(name, limit=LOST, owner="lost")]


def campaign(database: TestDatabase, lost: Sequence[Claim], rng: random.Random, plan: Plan) -> Tally:
    """Run a campaign on a restored database."""
    kernel = Kernel(database.connect(autocommit=True))
    stock = Stock(kernel, Clock(kernel.connection), rng, lost)
    with open_callers(database.dsn) as callers:
        return Campaign(stock, callers, plan).run()
