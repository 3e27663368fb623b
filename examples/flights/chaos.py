"""The chaos: a plan made from a seed, and the hand that carries it out while flights are being delivered.

The plan is fixed before anything runs: what happens, to whom, and when. What a blow hits depends on the moment: it
waits a little until its victim has deliveries in flight, because a process that dies idle proves nothing. A dispatcher
that is halted is caught between its consumer's commit and the answer: what it believes when it wakes up is stale.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, LiteralString
from uuid import UUID

from examples.flights.databases import OBSERVER, SOURCE, Databases
from examples.flights.events import MILEAGE, PUNCTUALITY
from examples.flights.supervisor import Patience, Supervisor

IN_FLIGHT_SECONDS_MAX: Final = 4.0
IN_FLIGHT_MIN: Final = 20
"""Fewer are the careful first steps towards a consumer that was away; a blow then would only keep it away."""
CATCH_SECONDS_MAX: Final = 4.0
COMMIT_SECONDS_MAX: Final = 0.3
WAKE_MARGIN_SECONDS: Final = 0.7
OVERSLEEP_SECONDS_MAX: Final = 6.0
SESSIONS_MAX: Final = 2
READY_SECONDS_MAX: Final = 8.0

_HELD: Final = """
select l.event_id from seapost.delivery_lease as l
join seapost.delivery_attempt_start as s on s.event_id = l.event_id and s.attempt_id = l.attempt_id
where %(name)s in (s.owner, l.destination)"""
_GIVEN_UP: Final = """
select count(*) from seapost.delivery_attempt_finish as f
join seapost.delivery_attempt_start as s on s.event_id = f.event_id and s.attempt_id = f.attempt_id
where f.outcome <> 1 and f.finished_at > %(since)s and s.started_at <= %(since)s
  and %(name)s in (s.owner, s.destination)"""
_APPLIED: Final = "select count(*) from seapost.inbox_receipt where consumer = %(name)s and event_id = any(%(events)s)"
_SESSIONS: Final = """
select pid, application_name, datname from pg_stat_activity
where datname = any(%(databases)s) and backend_type = 'client backend' and application_name <> %(observer)s
order by application_name, backend_start"""

Waiting = Generator[None, None, None]


class Blow(StrEnum):
    """What can be done to the run."""

    KILL = "kill"
    HALT = "halt"
    TERMINATE = "terminate"


@dataclass(frozen=True, slots=True)
class Act:
    """One line of the plan: what happens to whom, so many seconds after the first flight."""

    at_seconds: float
    blow: Blow
    target: str


@dataclass(frozen=True, slots=True)
class Incident:
    """What was done, when, to whom, and what it hit."""

    at_seconds: float
    what: str
    target: str
    effect: str


@dataclass(frozen=True, slots=True)
class Measure:
    """How much is done to a run.

    Attributes:
        seconds: the time over which it is spread.
        kills, halts, terminations: how often each blow falls.
    """

    seconds: float
    kills: int
    halts: int
    terminations: int


def make_plan(seed: int, measure: Measure, *, dispatchers: Sequence[str], consumers: Sequence[str]) -> list[Act]:
    """Spread the acts over the time in which flights are delivered, each in its turn and at its own moment.

    Kills go to dispatchers and consumers in turn, and to everybody before anybody again. The first halt comes early and
    to a dispatcher, since that is who sleeps on its leases.
    """
    rng = random.Random(seed)
    victims: list[str] = []
    while len(victims) < measure.kills:
        for pair in zip(rng.sample(dispatchers, 2), rng.sample(consumers, 2), strict=True):
            victims += rng.sample(pair, 2)
    sleepers = [rng.choice([*dispatchers, *consumers]) for _ in range(measure.halts - 1)]
    blows = [(Blow.KILL, victim) for victim in victims[: measure.kills]]
    blows += [(Blow.TERMINATE, "sessions")] * measure.terminations
    blows += [(Blow.HALT, sleeper) for sleeper in sleepers]
    rng.shuffle(blows)
    if measure.halts:
        blows.insert(min(1, len(blows)), (Blow.HALT, rng.choice(dispatchers)))
    seconds = measure.seconds
    slot = seconds * 0.92 / max(1, len(blows))
    return [
        Act(seconds * 0.04 + slot * (number + rng.uniform(0.1, 0.9)), blow, target)
        for number, (blow, target) in enumerate(blows)
    ]


class Chaos:
    """Carries out a plan against the supervisor's processes and the databases' sessions.

    Args:
        is_ready: whether a process has come up far enough to be worth a blow.
        name_of: what a process is called in the facts: a dispatcher by its owner id, a consumer by its own name.
        lease_seconds: lease of a claim; who is halted sleeps longer than that.
    """

    def __init__(
        self,
        plan: Sequence[Act],
        *,
        seed: int,
        supervisor: Supervisor,
        databases: Databases,
        is_ready: Callable[[str], bool],
        name_of: Callable[[str], str],
        lease_seconds: float,
    ) -> None:
        self.plan = list(plan)
        self.incidents: list[Incident] = []
        self._rng = random.Random(f"hand/{seed}")
        self._supervisor = supervisor
        self._databases = databases
        self._is_ready = is_ready
        self._name_of = name_of
        self._lease_seconds = lease_seconds
        self._sessions = ExitStack()
        self._observers = {
            part: self._sessions.enter_context(databases.observe(part)) for part in (SOURCE, PUNCTUALITY, MILEAGE)
        }
        self._started = time.monotonic()
        self._running: list[Waiting] = [self._carry_out()]

    @property
    def is_over(self) -> bool:
        """Whether everything planned has been done and everybody is awake."""
        return not self._running

    def tend(self) -> None:
        """Do what is due; never waits."""
        for waiting in list(self._running):
            if next(waiting, StopIteration) is StopIteration:
                self._running.remove(waiting)

    def close(self) -> None:
        """Give back the observing sessions."""
        self._running.clear()
        self._sessions.close()

    def _carry_out(self) -> Waiting:
        for act in self.plan:
            while time.monotonic() < self._started + act.at_seconds:
                yield
            match act.blow:
                case Blow.KILL:
                    yield from self._kill(self._awake(act.target))
                case Blow.HALT:
                    self._running.append(self._halt(self._awake(act.target)))
                case Blow.TERMINATE:
                    self._terminate()

    def _kill(self, name: str) -> Waiting:
        yield from self._until_ready(name)
        patience = Patience(IN_FLIGHT_SECONDS_MAX)
        while len(held := self._held(name)) < IN_FLIGHT_MIN and not patience.is_over:
            yield
        if self._supervisor.kill(name):
            self._note("SIGKILL", name, f"with {len(held)} deliveries in flight")

    def _halt(self, name: str) -> Waiting:
        """Halt a process until its leases are over and somebody has taken note, then let it go on."""
        yield from self._until_ready(name)
        yield from self._catch(name)
        since = self._moment()
        asleep_since = time.monotonic()
        self._note("SIGSTOP", name, f"with {len(self._held(name))} deliveries in flight")
        overslept = Patience(self._lease_seconds + OVERSLEEP_SECONDS_MAX)
        awake_at = asleep_since + self._lease_seconds + WAKE_MARGIN_SECONDS
        while not overslept.is_over and (time.monotonic() < awake_at or not self._given_up(name, since)):
            yield
        given_up = self._given_up(name, since)
        self._supervisor.wake(name)
        slept = time.monotonic() - asleep_since
        self._note("SIGCONT", name, f"slept {slept:.1f} s; {given_up} taken away meanwhile")

    def _catch(self, name: str) -> Waiting:
        """Stop a process with deliveries in flight; a dispatcher so that its consumer commits while it sleeps."""
        patience = Patience(CATCH_SECONDS_MAX)
        while True:
            while len(self._held(name)) < IN_FLIGHT_MIN and not patience.is_over:
                yield
            self._supervisor.stop(name)
            if patience.is_over or name in self._observers:
                return
            commit = Patience(COMMIT_SECONDS_MAX)
            while not commit.is_over:
                if self._is_applied(name):
                    return
                yield
            self._supervisor.wake(name)
            yield

    def _terminate(self) -> None:
        parameters = {"databases": list(self._databases.names.values()), "observer": OBSERVER}
        sessions = self._observers[SOURCE].execute(_SESSIONS, parameters).fetchall()
        chosen = self._rng.sample(sessions, min(len(sessions), self._rng.randint(1, SESSIONS_MAX)))
        for process_id, application, _ in chosen:
            _ = self._observers[SOURCE].execute("select pg_terminate_backend(%s)", (process_id,))
            self._note("terminate", str(application), "a database session")

    def _awake(self, target: str) -> str:
        """The target, or its twin when it sleeps or another process when it has none: who sleeps is left alone."""
        workers = self._supervisor.workers
        if not workers[target].is_stopped:
            return target
        kind = target.rstrip("0123456789")
        awake = [name for name, worker in workers.items() if worker.restarts and not worker.is_stopped]
        return next((name for name in awake if name.startswith(kind)), awake[0])

    def _until_ready(self, name: str) -> Waiting:
        patience = Patience(READY_SECONDS_MAX)
        while not patience.is_over and not self._is_ready(name):
            yield

    def _held(self, name: str) -> list[UUID]:
        """Events that a dispatcher has leased, or that are on their way to a consumer."""
        rows = self._observers[SOURCE].execute(_HELD, {"name": self._name_of(name)}).fetchall()
        return [row[0] for row in rows]

    def _is_applied(self, name: str) -> bool:
        """Whether a consumer has committed something that the dispatcher still holds as unanswered."""
        held = self._held(name)
        return any(
            self._count(part, _APPLIED, {"name": part, "events": held}) for part in (PUNCTUALITY, MILEAGE) if held
        )

    def _given_up(self, name: str, since: object) -> int:
        return self._count(SOURCE, _GIVEN_UP, {"name": self._name_of(name), "since": since})

    def _moment(self) -> object:
        row = self._observers[SOURCE].execute("select clock_timestamp()").fetchone()
        return row[0] if row else None

    def _count(self, part: str, query: LiteralString, parameters: dict[str, object]) -> int:
        row = self._observers[part].execute(query, parameters).fetchone()
        return int(row[0]) if row else 0

    def _note(self, what: str, target: str, effect: str) -> None:
        self.incidents.append(Incident(time.monotonic() - self._started, what, target, effect))
