"""With a long backlog each verb reads what it moves and nothing more, whatever the planner believed when it planned.

`SEAPOST_PLAN_ROWS` sets the size: a small one with every test run, a million in a run of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pytest

from benchmarks import fill
from seapost.database.installer import GuardLevel
from seapost.model.delivery import Claim
from tests.kit import builders
from tests.kit.builders import BILLING
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.plans import Ran, Watched

ROWS: Final = int(os.environ.get("SEAPOST_PLAN_ROWS", "20000"))
BATCH: Final = 100
READ_PER_CLAIM_MAX: Final = 3
PAGES_PER_ROW_MAX: Final = 40
"""A delivery moves through some ten tables and indexes of three or four levels; a scan costs far more."""
AUDITED_ROWS_MAX: Final = 100_000
STATUS_LIMIT: Final = 100_000
HOUR: Final = timedelta(hours=1)
DEAD: Final = min(ROWS // 8, 20_000)
OTHERS: Final = min(ROWS // 40, 10_000)

BIG: Final = frozenset(
    {
        "event_0001",
        "delivery_0001",
        "delivery_ready",
        "delivery_lease",
        "delivery_attempt_start_0001",
        "delivery_attempt_finish_0001",
        "delivery_acknowledgement_0001",
        "publication_0001",
    }
)
WHEN: Final = ("empty", "full")


@dataclass(frozen=True, slots=True)
class Backlog:
    """A database with many deliveries waiting, and sessions that made their plans at different times."""

    database: TestDatabase
    sessions: dict[str, Watched]

    def watched(self, planned_when: str) -> Watched:
        """The session that planned when the tables were so."""
        return self.sessions[planned_when]


@pytest.fixture(scope="module")
def backlog(database_server: DatabaseServer) -> Iterator[Backlog]:
    """Plan on empty, vacuumed tables in one session; then fill them, and open another session."""
    database = database_server.create(GuardLevel.LEAN)
    early = Kernel(database.connect(autocommit=True))
    early.route()
    early.run("set jit = off")
    early.run("set plan_cache_mode = force_generic_plan")
    early.append_new()
    old = early.claim_one()
    early.acknowledge(old)
    early.run("vacuum analyze")
    _every_verb(early, old)
    fill.waiting(early.connection, BILLING, ROWS, envelope_bytes=60)
    late = Kernel(database.connect(autocommit=True))
    late.run("set jit = off")
    yield Backlog(database, {"empty": Watched(early), "full": Watched(late)})
    if ROWS <= AUDITED_ROWS_MAX:
        database.assert_places()
    database_server.drop(database)


def _every_verb(kernel: Kernel, old: Claim) -> None:
    assert kernel.claim() == []
    assert (kernel.recover(), kernel.renew(old)) == ({}, set())
    for settle in (kernel.acknowledge, kernel.retry):
        assert [row[2] for row in settle(old)] == ["stale"]


def _check(ran: Ran, *indexes: str, rows: int = BATCH, big: frozenset[str] = BIG) -> None:
    assert set(indexes) <= ran.indexes, ran
    assert not ran.sequential & big, ran
    assert ran.read <= READ_PER_CLAIM_MAX * rows, ran
    assert ran.pages <= PAGES_PER_ROW_MAX * rows, ran


@pytest.mark.req("CLM-01", "CLM-02")
@pytest.mark.parametrize("planned_when", WHEN)
def test_a_claim_reads_what_it_takes(backlog: Backlog, planned_when: str) -> None:
    """A claim of 100 finds them in the claim index, reads at most three entries for each, and one event for each."""
    ran, claims = backlog.watched(planned_when).run(
        "delivery_ready", lambda kernel: kernel.claim(limit=BATCH, lease=HOUR)
    )
    assert len(claims) == BATCH
    _check(ran, "delivery_ready_claim", "event_0001_pkey")


@pytest.mark.req("DLV-07", "CLM-05", "CLM-07")
@pytest.mark.parametrize("planned_when", WHEN)
@pytest.mark.parametrize(
    ("verb", "index"),
    [
        ("acknowledge", "delivery_lease_pkey"),
        ("retry", "delivery_lease_pkey"),
        ("renew", "delivery_lease_pkey"),
        ("recover", "delivery_lease_expiry"),
    ],
)
def test_a_settle_reads_what_it_moves(backlog: Backlog, planned_when: str, verb: str, index: str) -> None:
    """Beside many leases of others, each verb finds its 100 by their own index and reads at most three entries each."""
    watched = backlog.watched(planned_when)
    others = watched.kernel.claim(limit=OTHERS, lease=HOUR)
    assert len(others) == OTHERS
    lease = timedelta(milliseconds=100) if verb == "recover" else HOUR
    claims = watched.kernel.claim(limit=BATCH, lease=lease)
    if verb == "recover":
        watched.kernel.run("select pg_sleep(0.1)")  # until the server's own clock has passed the leases
    ran, _ = watched.run("delivery_lease", lambda kernel: _verb(kernel, verb, claims))
    _check(ran, index)


def _verb(kernel: Kernel, verb: str, claims: Sequence[Claim]) -> object:
    calls: dict[str, Callable[[], Any]] = {
        "acknowledge": lambda: kernel.acknowledge(*claims),
        "retry": lambda: kernel.retry(*claims, delay=HOUR),
        "renew": lambda: kernel.renew(*claims, lease=HOUR),
        "recover": lambda: kernel.recover(limit=BATCH),
    }
    return calls[verb]()


@pytest.mark.req("APP-01")
@pytest.mark.parametrize("planned_when", WHEN)
def test_an_append_reads_nothing_of_the_backlog(backlog: Backlog, planned_when: str) -> None:
    """An append of 100 events scans neither the events nor the deliveries that are there."""
    envelopes = [builders.envelope() for _ in range(BATCH)]
    ran, stored = backlog.watched(planned_when).run("delivery_ready", lambda kernel: kernel.append(*envelopes))
    assert stored == BATCH
    assert ran.read == 0, ran
    _check(ran)


@pytest.mark.req("STO-08")
@pytest.mark.parametrize("planned_when", WHEN)
def test_the_status_of_one_delivery_is_a_few_probes(backlog: Backlog, planned_when: str) -> None:
    """The views show one event and its deliveries by their keys."""
    watched = backlog.watched(planned_when)
    (event_id,) = watched.kernel.append_new()
    ran, status = watched.run("delivery_ready", lambda kernel: kernel.status(event_id))
    assert status == "pending"
    filled = frozenset({"event_0001", "delivery_0001", "delivery_ready"})  # a view may read whole what is small
    _check(ran, "delivery_0001_pkey", "delivery_ready_pkey", rows=1, big=filled)
    ran, _ = watched.run("event_0001", lambda kernel: kernel.published_at(event_id))
    _check(ran, "event_0001_pkey", rows=1, big=filled)


@pytest.mark.req("MET-01")
@pytest.mark.parametrize("planned_when", WHEN)
def test_the_status_of_a_destination_stops_counting(backlog: Backlog, planned_when: str) -> None:
    """However long the backlog, the counts of a destination read no more than they show."""
    ran, rows = backlog.watched(planned_when).run(
        "delivery_ready", lambda kernel: kernel.rows("select destination, pending from seapost.destination_status")
    )
    assert dict(rows)[BILLING] >= min(ROWS, STATUS_LIMIT) // 4
    assert ran.read <= 3 * STATUS_LIMIT, ran


@pytest.mark.req("CLM-01", "DLV-07", "AMB-48", "F77")
@pytest.mark.parametrize("planned_when", WHEN)
def test_dead_rows_behind_an_old_snapshot_are_not_read_again(backlog: Backlog, planned_when: str) -> None:
    """While a snapshot keeps every dead row, a claim with its hint, and a settle, read as little as before."""
    watched = backlog.watched(planned_when)
    holder = backlog.database.connect()
    holder.execute("set transaction isolation level repeatable read")
    holder.execute("select count(*) from seapost.delivery_lease")
    low = None
    for _ in range(0, DEAD, 500):
        claims = watched.kernel.claim(limit=500, lease=HOUR, low=low)
        low = claims[-1].available_at
        assert watched.kernel.acknowledge(*claims) == []
    ran, claims = watched.run("delivery_ready", lambda kernel: kernel.claim(limit=BATCH, lease=HOUR, low=low))
    assert len(claims) == BATCH
    _check(ran, "delivery_ready_claim", rows=BATCH + 10)  # the dead entries at the hint's own moment
    for verb, part in (("renew", claims[: BATCH // 2]), ("acknowledge", claims[BATCH // 2 :])):
        ran, _ = watched.run("delivery_lease", lambda kernel, verb=verb, part=part: _verb(kernel, verb, part))
        _check(ran, "delivery_lease_pkey", rows=len(part))
    holder.rollback()
