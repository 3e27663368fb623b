"""One run from set-up to evidence: a server, three databases, five processes, and the chaos among them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from examples.flights import databases as databases_of_run
from examples.flights.chaos import Chaos, Measure, make_plan
from examples.flights.databases import SOURCE, Databases
from examples.flights.events import MILEAGE, PUNCTUALITY
from examples.flights.evidence import Evidence, judge
from examples.flights.expected import Expected, compute
from examples.flights.facts import Facts, gather
from examples.flights.interrupts import held_back
from examples.flights.producer import ProducerSettings
from examples.flights.progress import ProgressView, Standing
from examples.flights.report import ProcessRecord, Run, show
from examples.flights.settings import LEASE_SECONDS, DemoSettings, measure_for
from examples.flights.supervisor import DemoFailed, Patience, Supervisor, inherited_environment
from examples.flights.workers import CONSUMERS, DISPATCHERS, PRODUCER, Workers
from seapost.database.embedded import EmbeddedServer

SERVER_SETTINGS: Final = {"log_min_messages": "fatal", "max_connections": "60"}
STANDSTILL_SECONDS_MAX: Final = 45.0
SETTLE_LEASES: Final = 3
"""Leases of time that stay for the last deliveries once everything else is done."""

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to, for the caller that prints the last line."""

    evidence: Evidence
    run: Run


def run(settings: DemoSettings, console: Console) -> Outcome:
    """Run the demo, print its report, and leave nothing behind.

    Raises:
        DemoFailed: it could not be run to its end.
    """
    with ExitStack() as stack:
        expected = compute(settings.selection)
        measure = measure_for(expected.events)
        console.print(
            f"[bold]{expected.events:,} flights from New York in 2013, {expected.cancelled:,} of them cancelled[/]\n"
            f"planned with seed {settings.seed}: {measure.kills} × SIGKILL, {measure.halts} × SIGSTOP, "
            f"{measure.terminations} × pg_terminate_backend"
        )
        with console.status("setting up: PostgreSQL, three databases, two consumers, two dispatchers"):
            folder = stack.enter_context(_folder())
            databases = stack.enter_context(_databases(settings, folder))
            supervisor = Supervisor(folder / "private", inherited_environment() | {"PYTHONPATH": _python_path()})
            _ = stack.callback(supervisor.close)
            workers = Workers(folder / "private", databases)
            workers.start(supervisor)
        started = time.monotonic()
        chaos = _deliver(settings, console, workers, supervisor, databases, expected, measure)
        _ = supervisor.end(DISPATCHERS)
        _ = supervisor.end(CONSUMERS)
        seconds = time.monotonic() - started
        facts = gather_from(databases)
        evidence = judge(facts, expected, kills=supervisor.kills)
        records = [
            ProcessRecord(worker.name, worker.starts, len(worker.killed), worker.crashes)
            for worker in supervisor.workers.values()
        ]
        outcome = Outcome(evidence, Run(expected, facts, evidence, chaos.incidents, records, seconds))
        show(console, outcome.run)
        return outcome


def gather_from(databases: Databases) -> Facts:
    """Read the facts of a run out of its databases."""
    with (
        closing(databases.observe(SOURCE)) as source,
        closing(databases.observe(PUNCTUALITY)) as punctuality,
        closing(databases.observe(MILEAGE)) as mileage,
    ):
        return gather(source, punctuality, mileage)


def _deliver(
    settings: DemoSettings,
    console: Console,
    workers: Workers,
    supervisor: Supervisor,
    databases: Databases,
    expected: Expected,
    measure: Measure,
) -> Chaos:
    """Append, deliver and strike until every delivery has found its end."""
    pace = ProducerSettings(str(settings.selection), settings.seed, expected.events / measure.seconds)
    workers.start_producer(supervisor, pace)
    chaos = Chaos(
        make_plan(settings.seed, measure, dispatchers=DISPATCHERS, consumers=CONSUMERS),
        seed=settings.seed,
        supervisor=supervisor,
        databases=databases,
        is_ready=workers.is_up,
        name_of=workers.name_in_facts,
        lease_seconds=LEASE_SECONDS,
    )
    with (
        closing(chaos),
        closing(databases.observe(SOURCE)) as source,
        ProgressView(console, source, events=expected.events, deliveries=expected.deliveries) as view,
    ):
        clock = _Standstill()
        while True:
            supervisor.tend()
            chaos.tend()
            last = chaos.incidents[-1] if chaos.incidents else None
            standing = view.refresh(f"{last.what} {last.target}" if last else "")
            if chaos.is_over and not supervisor.workers[PRODUCER].is_running and _is_done(standing, expected):
                return chaos
            clock.look(standing)
            clock.pause()


def _is_done(standing: Standing, expected: Expected) -> bool:
    return standing.events >= expected.events and standing.under_way == 0


class _Standstill:
    """Gives up when nothing has moved for long: the evidence then says what is missing."""

    def __init__(self) -> None:
        self._standing = Standing()
        self._patience = Patience(STANDSTILL_SECONDS_MAX)

    def look(self, standing: Standing) -> None:
        """Raise `DemoFailed` when the standing has been the same for too long."""
        if standing != self._standing:
            self._standing = standing
            self._patience = Patience(STANDSTILL_SECONDS_MAX)
        elif self._patience.is_over:
            message = (
                f"nothing has moved for {STANDSTILL_SECONDS_MAX:.0f} s: {standing.events:,} events appended, "
                f"{standing.acknowledged:,} deliveries acknowledged, {standing.under_way:,} still under way"
            )
            raise DemoFailed(message)

    def pause(self) -> None:
        """Leave the processor to the others for a moment."""
        self._patience.pause()


@contextmanager
def _folder() -> Generator[Path, None, None]:
    """A folder for this run: open at the top, so that the server's own user can pass, private where secrets lie."""
    folder = Path(tempfile.mkdtemp(prefix="seapost-flights-"))
    try:
        folder.chmod(0o755)
        (folder / "private").mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _databases(settings: DemoSettings, folder: Path) -> Generator[Databases, None, None]:
    """The run's databases on the user's server, or on one made for the run and as durable as any."""
    with ExitStack() as stack:
        if settings.server_dsn is None:
            server = EmbeddedServer(folder / "data", settings=SERVER_SETTINGS)
            _ = stack.callback(server.stop)
            with held_back():
                server.start()
            databases = databases_of_run.choose_names(server.dsn())
        else:
            databases = databases_of_run.choose_names(settings.server_dsn)
            _ = stack.callback(databases_of_run.drop, databases)
        databases_of_run.create(databases)
        yield databases


def _python_path() -> str:
    """Where the processes find this package, wherever they are started."""
    given = os.environ.get("PYTHONPATH")
    return f"{ROOT}{os.pathsep}{given}" if given else str(ROOT)
