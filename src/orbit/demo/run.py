"""One run from set-up to evidence: a database, `orbit serve`, two workers, three subscribers, and the chaos."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import httpx
import psycopg
from psycopg import AsyncConnection
from rich.console import Console

from orbit.demo.chaos import BLOWS_SECONDS, SERVER, WORKERS, Chaos, Incident, make_plan
from orbit.demo.evidence import Evidence, judge
from orbit.demo.flights import FLIGHTS_MAX, Fate, Flight, fate_of, read_flights
from orbit.demo.people import Office, produce, review
from orbit.demo.platform import OBSERVER, ROLES, Platform, open_database, open_folder, set_up
from orbit.demo.processes import DemoFailed, Processes
from orbit.demo.report import show
from orbit.demo.standing import Standing, View, look
from orbit.history.checker import check_history
from orbit.history.exporting import export_history
from orbit.history.reading import read_history
from orbit.history.verdict import Verdict
from orbit.sdk import AsyncManagementClient
from seapost.model.errors import InvalidSetting

FLIGHTS_DEFAULT: Final = 800
KILLS_DEFAULT: Final = 8
READY_SECONDS_MAX: Final = 30.0
STANDSTILL_SECONDS_MAX: Final = 50.0
"""Longer than a lease and its backoff, during which nothing need move."""
LOOK_SECONDS: Final = 0.25
ORBIT: Final = "from orbit.cli.main import main; main()"
"""The `orbit` program, wherever this Python finds it."""
PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """What a run does.

    Attributes:
        flights: how many of the year's flights become tasks.
        seed: of the plan of blows.
        kills: how often the one subscriber is killed; workers and server come on top, unless it is 0.
        seconds: over which flights and blows are spread.
        server_dsn: a PostgreSQL to work on, as a superuser; None makes one for the run.
    """

    flights: int = FLIGHTS_DEFAULT
    seed: int = 1
    kills: int = KILLS_DEFAULT
    seconds: float = BLOWS_SECONDS
    server_dsn: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.flights <= FLIGHTS_MAX:
            raise InvalidSetting(f"flights: 1 to {FLIGHTS_MAX}, not {self.flights}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: the evidence of the inboxes, and the verdict on the history."""

    evidence: Evidence
    verdict: Verdict

    @property
    def holds(self) -> bool:
        """Whether every promise was kept."""
        return self.evidence.holds and self.verdict.holds


def run_demo(settings: DemoSettings, console: Console) -> Outcome:
    """Run the demo, print its report, and leave nothing behind; the caller prints `evidence.line()` last.

    Raises:
        DataMissing: the flights are not installed.
        DemoFailed: it could not be run to its end.
        KeyboardInterrupt: interrupted; everything that it started has been ended.
    """
    flights = read_flights(settings.flights)
    reviewed = sum(fate_of(flight.task_input) is Fate.REVIEWED for flight in flights)
    blows = f"{settings.kills} × SIGKILL to one subscriber, one to each worker and to the server"
    console.print(
        f"[bold]{len(flights):,} flights from New York in 2013 as tasks, {reviewed:,} of them unclear[/]\n"
        f"planned with seed {settings.seed}: {blows if settings.kills else 'nobody is killed'}; "
        "another subscriber is paused, the third is slow"
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(_interruptible())
        with console.status("setting up: PostgreSQL, schema, credentials"):
            folder = stack.enter_context(open_folder())
            dsn = stack.enter_context(open_database(folder, settings.server_dsn))
            platform = asyncio.run(set_up(folder, dsn))
            processes = Processes(platform.folder)
            _ = stack.callback(processes.close)
        started = time.monotonic()
        try:
            incidents = asyncio.run(_deliver(settings, console, platform, processes, flights))
        except* DemoFailed as failed:
            raise failed.exceptions[0] from None
        seconds = time.monotonic() - started
        processes.end(*WORKERS, *(role.name for role in ROLES))
        processes.end(SERVER)
        evidence = judge(platform, flights, kills=processes.kills)
        verdict = _verify(platform)
        show(console, incidents=incidents, processes=processes, evidence=evidence, verdict=verdict, seconds=seconds)
        return Outcome(evidence, verdict)


@contextmanager
def _interruptible() -> Generator[None]:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C would: the way out ends the processes and removes the data."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in heard:
        _ = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in heard.items():
            _ = signal.signal(number, handler)


def _verify(platform: Platform) -> Verdict:
    """Check what workers and subscribers wrote down together with what the database says."""
    facts = platform.folder / "database.jsonl"
    with psycopg.connect(platform.dsn) as connection:
        _ = export_history(connection, facts)
    return check_history(read_history(facts, platform.client_history))


async def _deliver(
    settings: DemoSettings, console: Console, platform: Platform, processes: Processes, flights: Sequence[Flight]
) -> list[Incident]:
    """Submit, work, deliver and strike until every subscriber has everything."""
    await _start_server(platform, processes)
    subscriptions = await _subscribe(platform)
    _start_others(platform, processes, subscriptions)
    async with _observer(platform) as eye, _observer(platform) as second_eye, _observer(platform) as third_eye:
        chaos = Chaos(platform, processes, second_eye, subscriptions=subscriptions)
        headers = {"Authorization": f"Bearer {platform.tokens['operator']}"}
        async with httpx.AsyncClient(base_url=platform.base_url, headers=headers, timeout=10.0) as client:
            office = Office(client)
            async with asyncio.TaskGroup() as group:
                busy = [
                    group.create_task(produce(office, flights, seconds=settings.seconds)),
                    group.create_task(
                        chaos.carry_out(make_plan(settings.seed, kills=settings.kills, seconds=settings.seconds))
                    ),
                ]
                operator = group.create_task(review(office, third_eye))
                await _watch(console, processes, eye, chaos, busy, tasks=len(flights))
                _ = operator.cancel()
    return chaos.incidents


async def _watch(
    console: Console,
    processes: Processes,
    eye: AsyncConnection[Any],
    chaos: Chaos,
    busy: Sequence[asyncio.Task[None]],
    *,
    tasks: int,
) -> None:
    """Show how far it is until all is done, or nothing has moved for longer than a lease.

    What is missing then is for the evidence to say.
    """
    moved_at, before = time.monotonic(), None
    with View(console, tasks=tasks) as view:
        while True:
            processes.tend()
            standing = await look(eye)
            last = chaos.incidents[-1] if chaos.incidents else None
            view.refresh(standing, f"{last.what} {last.target}" if last else "")
            if all(task.done() for task in busy) and standing.is_done(tasks):
                return
            if standing != before:
                moved_at, before = time.monotonic(), standing
            elif time.monotonic() - moved_at > STANDSTILL_SECONDS_MAX:
                raise DemoFailed(f"nothing has moved for {STANDSTILL_SECONDS_MAX:.0f} s: {_missing(standing, tasks)}")
            await asyncio.sleep(LOOK_SECONDS)


def _missing(standing: Standing, tasks: int) -> str:
    shares = ", ".join(f"{name} {share.acked} of {share.results}" for name, share in standing.shares.items())
    return f"{standing.final} of {tasks} tasks have their end; acknowledged: {shares}"


async def _start_server(platform: Platform, processes: Processes) -> None:
    processes.start(
        SERVER,
        *("-c", ORBIT, "serve", "--port", str(platform.port), "--role", "orbit_server", "--no-access-log"),
        environment={"ORBIT_DATABASE_URL": platform.dsn},
    )
    deadline, said = time.monotonic() + READY_SECONDS_MAX, "no answer"
    async with httpx.AsyncClient(base_url=platform.base_url) as client:
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = await client.get("/readyz")
                if answer.status_code == httpx.codes.OK:
                    return
                said = answer.text
            if time.monotonic() > deadline or not processes.members[SERVER].is_running:
                raise DemoFailed(f"the server did not become ready: {said}\n{processes.members[SERVER].last_lines()}")
            await asyncio.sleep(PAUSE_SECONDS)


async def _subscribe(platform: Platform) -> dict[str, str]:
    """Make the subscriptions, each by its own subscriber's credential, from the beginning of the journal."""
    subscriptions: dict[str, str] = {}
    for role in ROLES:
        async with AsyncManagementClient(platform.base_url, platform.tokens[role.name]) as client:
            subscription = await client.create_subscription(
                name=role.name, queue=role.queue, from_sequence=0, max_pending=role.max_pending, max_attempts=100
            )
            subscriptions[role.name] = subscription.subscription_id
    return subscriptions


def _start_others(platform: Platform, processes: Processes, subscriptions: dict[str, str]) -> None:
    for name in WORKERS:
        processes.start(
            name,
            *("-m", "orbit.demo.worker"),
            *(platform.base_url, name, str(platform.client_history)),
            environment={"ORBIT_TOKEN": platform.tokens["worker"]},
        )
    for role in ROLES:
        file, numbers = str(platform.inbox_file(role)), (str(role.capacity), str(role.pause_ms))
        processes.start(
            role.name,
            *("-m", "orbit.demo.subscriber"),
            *(platform.base_url, subscriptions[role.name], file, *numbers),
            environment={"ORBIT_TOKEN": platform.tokens[role.name]},
        )


@asynccontextmanager
async def _observer(platform: Platform) -> AsyncGenerator[AsyncConnection[Any]]:
    """A session that only looks."""
    async with await AsyncConnection.connect(platform.dsn, autocommit=True, application_name=OBSERVER) as connection:
        yield connection
