"""The worker of finalizations: leases works, asks the owners in batches, decides, and writes (FIN-03 to FIN-07).

| A work meets | It ends in |
|---|---|
| a trigger without a closure watermark | Finish `closure_event_not_applied`; nothing is asked (FIN-03, AMB-34) |
| a dimension without a settlement input | Finish `settlement_input_not_applied` (REF-37) |
| an owner's conflict, gate open | decision, case identity, case requested (TX-26) |
| an owner's conflict, gate closed | nothing: it stays pending and is tried again (AMB-51) |
| an owner that cannot say yet | nothing, likewise (AMB-45) |
| every input | the finalization (TX-10) |

A work whose fence moved on meanwhile writes nothing either; the newer generation has superseded it.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import psycopg

from oceanway.billing import store_finalization as store
from oceanway.billing.finalization.claimed import ClaimedWork
from oceanway.billing.finalization.deciding import Closing, Decider, Ending, Finishing, Later, Requiring
from oceanway.billing.finalization.gate import CommandChain, starting_gate
from oceanway.billing.store_finalization import PriceKey
from oceanway.contracts.errors import OceanWayError, OwnerConflict, Stale
from seapost.contracts.identifiers import write_timestamp
from seapost.telemetry.logging import get_logger

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.client import Reader
    from seapost.database.pool import SyncPool

_log = get_logger("oceanway.billing.finalization.worker")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a work is leased, and how long one rests that cannot end now."""

    lease: timedelta = timedelta(seconds=30)
    retry_base: timedelta = timedelta(milliseconds=200)
    retry_longest: timedelta = timedelta(seconds=60)


DEFAULT_PACE: Final = Pace()


def build_runner(
    pool: SyncPool,
    reader: Reader,
    *,
    gate: bool | None = None,
    chain: CommandChain | None = None,
    pace: Pace = DEFAULT_PACE,
) -> FinalizationRunner:
    """Make a runner of finalization works.

    Args:
        gate: whether it may enter reconciliation cases; None takes what the database says, off by default (REF-43).
        chain: what is registered of the command chain; None takes the parts with which the gate was opened.

    Raises:
        GateClosed: the gate is wanted or open without the whole command chain (CASE-25).
    """
    with pool.connection() as connection:
        is_open = starting_gate(connection, wanted=gate, chain=chain)
    return FinalizationRunner(pool, reader, gate=is_open, pace=pace)


class FinalizationRunner:
    """Runs finalization works; `step` is what a loop calls.

    Attributes:
        waiting: how often a work could not end, by reason; `conflict_gate_closed` asks for an operator (AMB-51).
    """

    def __init__(self, pool: SyncPool, reader: Reader, *, gate: bool, pace: Pace = DEFAULT_PACE) -> None:
        self._pool = pool
        self._pace = pace
        self._owner = f"{socket.gethostname()}:{os.getpid()}"[:64]
        self._prices: dict[PriceKey, Decimal] = {}
        self._decider = Decider(reader, self._price, gate=gate)
        self.waiting: Counter[str] = Counter()

    def step(self, limit: int) -> int:
        """Lease and end at most so many works; how many were leased."""
        with self._pool.connection() as connection:
            rows = store.claim_works(connection, self._owner, limit, self._pace.lease)
        if not rows:
            return 0
        works = [ClaimedWork.of(row) for row in rows]
        endings = self._decider.decide(works, write_timestamp(datetime.now(UTC)))
        self._write([one for one in endings if not isinstance(one, Later)])
        self._give_back([one for one in endings if isinstance(one, Later)])
        return len(works)

    def _price(self, keys: Sequence[PriceKey]) -> dict[PriceKey, Decimal]:
        """Unit prices; they never change, so each is read once."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._prices]
        if unknown:
            with self._pool.connection() as connection:
                found = store.read_prices(connection, unknown)
            self._prices |= {key: Decimal(text) for key, text in zip(unknown, found, strict=True) if text is not None}
        return self._prices

    def _write(self, endings: Sequence[Ending]) -> None:
        """Write all endings in one transaction, or each in its own when one of them fails."""
        if not endings:
            return
        ordered = sorted(endings, key=_lock_order)
        try:
            with self._pool.connection() as connection:
                if len(ordered) > 1:
                    reservations = [one.work.subject["billingReservationId"] for one in ordered]
                    store.hold_fences(connection, reservations)
                for one in ordered:
                    write_ending(connection, one)
        except (OceanWayError, psycopg.Error):
            for one in ordered:
                self._write_alone(one)

    def _write_alone(self, ending: Ending) -> None:
        try:
            with self._pool.connection() as connection:
                write_ending(connection, ending)
        except Stale:
            self.waiting["fence_moved_on"] += 1  # the newer generation is the work now
        except OwnerConflict as error:
            _log.error("finalization_conflict", work=ending.work.quad.ref, exc_info=error)
            self._give_back([Later(ending.work, "identity_conflict")])
        except OceanWayError as error:
            _log.warning("finalization_not_written", work=ending.work.quad.ref, exc_info=error)
            self._give_back([Later(ending.work, type(error).__name__)])

    def _give_back(self, endings: Sequence[Later]) -> None:
        if not endings:
            return
        self.waiting.update(one.reason for one in endings)
        for reason, count in Counter(one.reason for one in endings).items():
            _log.warning("finalization_waits", reason=reason, works=count)
        with self._pool.connection() as connection:
            _ = store.retry_works(
                connection,
                [(one.work.quad.ref, one.work.fencing_token) for one in endings],
                base=self._pace.retry_base,
                longest=self._pace.retry_longest,
            )


def _lock_order(ending: Ending) -> tuple[str, str]:
    """Accounts are locked in one order by all workers."""
    subject = ending.work.subject
    return subject["billingAccountId"], subject["billingReservationId"]


def write_ending(connection: Connection[Any], ending: Ending) -> None:
    """Write what became of one work in the caller's transaction; `Later` writes nothing."""
    work = ending.work
    match ending:
        case Finishing():
            _ = store.finish_work(
                connection,
                ending.finish.canonical(),
                fencing_token=work.fencing_token,
                expected_revision=work.fence_revision,
            )
        case Closing():
            _ = store.commit_finalization(
                connection,
                decision=ending.decision.canonical(),
                fact=ending.fact.canonical(),
                finish=ending.finish.canonical(),
                envelope=ending.envelope,
                fencing_token=work.fencing_token,
                catch_up_works=ending.opening.works,
                dimension_states=ending.opening.dimension_states,
            )
        case Requiring():
            _ = store.require_reconciliation(
                connection,
                decision=ending.decision.canonical(),
                identity=ending.identity.canonical(),
                finish=ending.finish.canonical(),
                envelope=ending.envelope,
                fencing_token=work.fencing_token,
                expected_revision=work.fence_revision,
            )
        case Later():
            pass
