"""A stock of live claims, and of stale words of every kind that a worker, a bug or a restored database can make."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from uuid import UUID

import uuid_utils.compat

from seapost.model.delivery import Claim, Fence
from tests.fencing.calls import LONG
from tests.kit.builders import BILLING, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel

DESTINATIONS = (BILLING, SEARCH)
KIND_SIZE = 60
LIVE_MIN = 120
LIVE_NEW = 240
CALL_SIZE = 40
"""Claims of one call share their token, so the stock is claimed in several."""
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


class Kind(StrEnum):
    """Why a word is stale: the first ones were true once, the others never were."""

    OLD_TOKEN = "an earlier attempt, claimed again by another worker"
    RECOVERED = "expired and recovered, nobody holds it"
    TAKEN_OVER = "expired, recovered, held by another worker"
    RETRIED = "given back, nobody holds it"
    ACKNOWLEDGED = "acknowledged already"
    QUARANTINED = "quarantined already"
    RESTORED = "claimed before the database was restored, same attempt id"
    OTHER_TOKEN = "the token of another delivery"
    OTHER_ATTEMPT = "the attempt of another delivery"
    OTHER_EVENT = "attempt and token of another event"
    OTHER_DESTINATION = "the fence of the event's other destination"
    RANDOM_TOKEN = "a made-up token"
    RANDOM_ATTEMPT = "a made-up attempt"
    RANDOM_EVENT = "a made-up event"


LIVED = (
    Kind.OLD_TOKEN,
    Kind.RECOVERED,
    Kind.TAKEN_OVER,
    Kind.RETRIED,
    Kind.ACKNOWLEDGED,
    Kind.QUARANTINED,
    Kind.RESTORED,
)
Names = dict[str, dict[UUID, Claim]]


class Stock:
    """Live and stale claims of both destinations.

    Args:
        kernel: a superuser's session of the database.
        clock: the database's clock.
        rng: decides everything that is left to chance.
        lost: claims that were made on this database's original after it was copied.
    """

    def __init__(self, kernel: Kernel, clock: Clock, rng: random.Random, lost: Sequence[Claim]) -> None:
        self.kernel = kernel
        self.clock = clock
        self.rng = rng
        self.live: Names = {name: {} for name in DESTINATIONS}
        self.stale: dict[str, dict[Kind, list[Claim]]] = {name: {kind: [] for kind in LIVED} for name in DESTINATIONS}
        self._restore(lost)
        for destination in DESTINATIONS:
            self._fill(destination)
        self.refill()

    def refill(self) -> None:
        """Append and claim until there are live claims enough."""
        if min(map(len, self.live.values())) < LIVE_MIN:
            self.kernel.append_new(SHIPPED, LIVE_NEW)
            for destination in DESTINATIONS:
                self._claim(destination)

    def end(self, claims: Sequence[Claim], kind: Kind) -> None:
        """These live claims were settled; kept as stale ones from now on, of this kind."""
        for claim in claims:
            del self.live[claim.destination][claim.fence.event_id]
            self.stale[claim.destination][kind].append(claim)

    def draw(self, destination: str, avoid: Sequence[Claim]) -> tuple[Kind, Claim] | None:
        """A stale word for a destination; none that could be taken for one of the claims to avoid.

        None when chance has picked one of those.
        """
        events = {claim.fence.event_id for claim in avoid}
        attempts = {claim.fence.attempt_id for claim in avoid}
        kind = self.rng.choice(list(Kind))
        claim = self._make(kind, destination)
        if claim.fence.event_id in events or claim.fence.attempt_id in attempts:
            return None
        return kind, claim

    def _make(self, kind: Kind, destination: str) -> Claim:
        if kind in LIVED:
            return self.rng.choice(self.stale[destination][kind])
        claim, other = self._pair(destination)
        fence, foreign = claim.fence, other.fence
        match kind:
            case Kind.OTHER_TOKEN:
                made = Fence(fence.event_id, fence.attempt_id, foreign.token)
            case Kind.OTHER_ATTEMPT:
                made = Fence(fence.event_id, foreign.attempt_id, fence.token)
            case Kind.OTHER_EVENT:
                made = Fence(fence.event_id, foreign.attempt_id, foreign.token)
            case Kind.OTHER_DESTINATION:
                return self.rng.choice(list(self.live[self._other(destination)].values()))
            case Kind.RANDOM_TOKEN:
                made = Fence(fence.event_id, fence.attempt_id, self._uuid())
            case Kind.RANDOM_ATTEMPT:
                made = Fence(fence.event_id, self.rng.randrange(1, 2**62), fence.token)
            case _:
                made = Fence(self._uuid(), fence.attempt_id, fence.token)
        return replace(claim, fence=made)

    def _pair(self, destination: str) -> tuple[Claim, Claim]:
        """Two live claims of different calls, and so with different tokens."""
        claims = list(self.live[destination].values())
        while True:
            one, two = self.rng.sample(claims, 2)
            if one.fence.token != two.fence.token:
                return one, two

    def _uuid(self) -> UUID:
        return uuid_utils.compat.UUID(int=self.rng.getrandbits(128), version=4)

    @staticmethod
    def _other(destination: str) -> str:
        return SEARCH if destination == BILLING else BILLING

    # Making it ----------------------------------------------------------------------------------------------

    def _restore(self, lost: Sequence[Claim]) -> None:
        """Claim here what was claimed on the lost original: the same attempt ids, and other tokens."""
        self.clock.set(max(claim.available_at for claim in lost))
        for destination in DESTINATIONS:
            before = [claim for claim in lost if claim.destination == destination]
            again = self.kernel.claim(destination, limit=len(before), lease=LONG, owner="restored")
            assert [(c.fence.event_id, c.fence.attempt_id) for c in again] == [
                (c.fence.event_id, c.fence.attempt_id) for c in before
            ], "the copy does not repeat the attempt ids of the original"
            self.live[destination] |= {claim.fence.event_id: claim for claim in again}
            self.stale[destination][Kind.RESTORED] = before

    def _fill(self, destination: str) -> None:
        """Make the kinds that were true once, one after the other."""
        stale = self.stale[destination]
        stale[Kind.OLD_TOKEN] = self._take(destination)
        assert self.kernel.retry(*stale[Kind.OLD_TOKEN]) == []
        self._claim(destination)
        for kind, end in self._ends().items():
            stale[kind] = self._take(destination)
            assert end(*stale[kind]) == []
        stale[Kind.TAKEN_OVER] = self._expire(destination, delay=timedelta())
        again = self.kernel.claim(destination, limit=10_000, lease=LONG, owner="heir", suspects=True)
        assert len(again) == len(stale[Kind.TAKEN_OVER])
        self.live[destination] |= {claim.fence.event_id: claim for claim in again}
        stale[Kind.RECOVERED] = self._expire(destination, delay=DAY)

    def _ends(self) -> dict[Kind, Callable[..., object]]:
        return {
            Kind.ACKNOWLEDGED: self.kernel.acknowledge,
            Kind.QUARANTINED: self.kernel.quarantine,
            Kind.RETRIED: partial(self.kernel.retry, delay=DAY),
        }

    def _expire(self, destination: str, *, delay: timedelta) -> list[Claim]:
        claims = self._take(destination, lease=SECOND)
        self.clock.advance(2)
        assert self.kernel.recover(delay=delay) == {destination: len(claims)}
        return claims

    def _take(self, destination: str, *, lease: timedelta = LONG) -> list[Claim]:
        """Claim events of this destination's own making; the other destination's half becomes live."""
        self.kernel.append_new(SHIPPED, KIND_SIZE)
        self._claim(self._other(destination))
        claims = self.kernel.claim(destination, limit=KIND_SIZE, lease=lease, owner="first")
        assert len(claims) == KIND_SIZE
        return claims

    def _claim(self, destination: str) -> None:
        while claims := self.kernel.claim(destination, limit=CALL_SIZE, lease=LONG, owner="holder"):
            self.live[destination] |= {claim.fence.event_id: claim for claim in claims}
