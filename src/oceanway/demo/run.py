"""One day from set-up to evidence: the driver begins transactions, thirteen processes settle them, the auditor counts.

The run is over when the driver has ended, every blow has fallen, and nothing is under way any more: no delivery waits,
and the figures have stood still for longer than any rest or lease.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from rich.console import Console

from oceanway.demo import store_platform, supervise
from oceanway.demo.audit import audit
from oceanway.demo.chaos import Chaos, make_plan
from oceanway.demo.processes import LOG_LINES_SHOWN, DemoFailed, Processes
from oceanway.demo.report import Evidence, Standing, View, show
from oceanway.installation.layout import DISPATCHED, Database
from seapost.model.errors import InvalidSetting

if TYPE_CHECKING:
    from types import FrameType

    from oceanway.demo.supervise import Platform

RUNS_DEFAULT: Final = 2_000
RUNS_MAX: Final = 100_000
KILLS_DEFAULT: Final = 12
KILL_SECONDS_MIN: Final = 12.0
RUNS_PER_SECOND: Final = 60
"""How fast the day is thought to be when the blows are spread over it."""
LOOK_SECONDS: Final = 0.5
LOOK_SHARE_MAX: Final = 0.03
"""Counting takes at most this share of the time."""
QUIET_SECONDS: Final = 2.0
STANDSTILL_SECONDS_MAX: Final = 25.0
"""Longer than any lease, backoff and rest of the processes."""
PAUSE_SECONDS: Final = 0.05
OBSERVER: Final = "oceanway-demo"


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """What a run does.

    Attributes:
        runs: agent runs that are admitted, metered and settled.
        seed: of the day and of the plan of blows.
        kills: how many workers SIGKILL ends.
        server_dsn: a PostgreSQL to work on, as a superuser; None makes one for the run.
    """

    runs: int = RUNS_DEFAULT
    seed: int = 1
    kills: int = KILLS_DEFAULT
    server_dsn: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= RUNS_MAX:
            raise InvalidSetting(f"runs: 1 to {RUNS_MAX}, not {self.runs}")
        if self.kills < 0:
            raise InvalidSetting(f"kills: at least 0, not {self.kills}")

    @property
    def seconds(self) -> float:
        """Over which the blows are spread."""
        return max(KILL_SECONDS_MIN, self.runs / RUNS_PER_SECOND)


def run_demo(settings: DemoSettings, console: Console) -> Evidence:
    """Run the demo, print its report, and leave nothing behind; the caller prints `Evidence.line()` last.

    Raises:
        DemoFailed: it could not be run to its end.
        KeyboardInterrupt: interrupted; everything that it started has been ended.
    """
    console.print(
        f"[bold]{settings.runs:,} runs of a day with seed {settings.seed}[/]; "
        f"{settings.kills or 'nobody'} of {len(supervise.WORKERS)} processes killed meanwhile"
    )
    with ExitStack() as stack:
        stack.enter_context(_interruptible())
        with console.status("setting up: PostgreSQL, five databases, thirteen processes"):
            folder = stack.enter_context(supervise.open_folder())
            processes = Processes(folder / supervise.PRIVATE, supervise.environment())  # loads while databases are made
            stack.enter_context(closing(processes))
            platform = stack.enter_context(supervise.open_platform(folder, settings.server_dsn))
            _ = stack.callback(processes.close)  # before the databases go
            supervise.start(platform, processes)
        started = time.monotonic()
        with _Day(settings, console, platform, processes) as day:
            day.run()
            seconds = time.monotonic() - started
        codes = supervise.stop(processes)
        unclean = {name: code for name, code in codes.items() if code != 0}
        if unclean:
            console.print(f"[yellow]not stopped in order: {unclean}[/]")
        with console.status("auditing the five databases"):
            found = audit({name.value: dsn for name, dsn in platform.dsns.items()}, platform.ledger)
        evidence = Evidence(found, processes.kills)
        show(console, incidents=day.incidents, processes=processes, evidence=evidence, seconds=seconds)
        return evidence


class _Day:
    """The driver, the chaos and the watch over both."""

    def __init__(self, settings: DemoSettings, console: Console, platform: Platform, processes: Processes) -> None:
        self._settings = settings
        self._console = console
        self._platform = platform
        self._processes = processes
        self._stack = ExitStack()
        self._observers: dict[Database, psycopg.Connection[Any]] = {}
        self._look_at = 0.0
        self._standing = Standing()
        self._chaos = Chaos([], processes, self._holders)

    def __enter__(self) -> Self:
        for name, dsn in self._platform.dsns.items():
            session = psycopg.connect(dsn, autocommit=True, application_name=OBSERVER)
            self._observers[name] = self._stack.enter_context(session)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    @property
    def incidents(self) -> Sequence[Any]:
        """What was done to the run."""
        return self._chaos.incidents

    def run(self) -> None:
        """Until nothing is under way.

        Raises:
            DemoFailed: the driver failed, a worker does not stay up, or nothing moves any more.
        """
        settings = self._settings
        driver = self._stack.enter_context(_driving(self._platform, settings))
        plan = make_plan(settings.seed, list(self._processes.members), kills=settings.kills, seconds=settings.seconds)
        self._chaos = Chaos(plan, self._processes, self._holders)
        pause = Event()
        moved_at, before = time.monotonic(), self._standing
        with View(self._console, runs=settings.runs) as view:
            while True:
                self._processes.tend()
                self._chaos.tend()
                standing = self._look()
                view.refresh(standing, self._last_incident())
                now = time.monotonic()
                if standing != before:
                    moved_at, before = now, standing
                _check(driver, self._platform)
                still = now - moved_at
                is_done = driver.poll() == 0 and self._chaos.is_over and standing.under_way == 0
                if is_done and still > (STANDSTILL_SECONDS_MAX if standing.works else QUIET_SECONDS):
                    return  # a work that waits for a person is for the auditor to judge
                if still > STANDSTILL_SECONDS_MAX:
                    what = f"nothing has moved for {STANDSTILL_SECONDS_MAX:.0f} s: {standing}"
                    raise DemoFailed(f"{what}\n{self._processes.troubles()}")
                _ = pause.wait(PAUSE_SECONDS)

    def _look(self) -> Standing:
        """Count again if it is time to."""
        now = time.monotonic()
        if now < self._look_at:
            return self._standing
        flows = [store_platform.flow(session) for session in self._observers.values()]
        self._standing = Standing(
            finalized=store_platform.finalized(self._observers[Database.BILLING]),
            events=sum(one.events for one in flows),
            acknowledged=sum(one.acknowledged for one in flows),
            under_way=sum(one.under_way for one in flows),
            works=sum(one.waiting for one in self._works()),
        )
        took = time.monotonic() - now
        self._look_at = now + max(LOOK_SECONDS, took / LOOK_SHARE_MAX)
        return self._standing

    def _works(self) -> list[store_platform.Works]:
        """How the works of every loop stand."""
        metering, billing = self._observers[Database.METERING], self._observers[Database.BILLING]
        return [*store_platform.metering_works(metering), *store_platform.billing_works(billing)]

    def _holders(self) -> list[tuple[str, int]]:
        """The processes that hold deliveries or works, most first."""
        found = [
            (name, store_platform.leased(self._observers[one.database], list(DISPATCHED[one.database])))
            for name, one in supervise.dispatchers().items()
        ]
        found += [(one.process, one.leased) for one in self._works()]
        return sorted(((name, count) for name, count in found if count), key=lambda pair: -pair[1])

    def _last_incident(self) -> str:
        return f"SIGKILL {self.incidents[-1].target}" if self.incidents else ""


@contextmanager
def _driving(platform: Platform, settings: DemoSettings) -> Generator[subprocess.Popen[bytes]]:
    """The driver's process; ended with the run."""
    arguments: Mapping[str, object] = {
        "--config": platform.config,
        "--runs": settings.runs,
        "--seed": settings.seed,
        "--seconds": settings.seconds,
        "--ledger": platform.ledger,
    }
    command = [sys.executable, "-m", "oceanway.demo.drive", *(str(one) for pair in arguments.items() for one in pair)]
    with (platform.folder / "driver.log").open("ab") as log:
        driver = subprocess.Popen(  # noqa: S603 - our own module
            command,
            env=supervise.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield driver
    finally:
        driver.kill()
        _ = driver.wait()


def _check(driver: subprocess.Popen[bytes], platform: Platform) -> None:
    code = driver.poll()
    if code not in {None, 0}:
        lines = (platform.folder / "driver.log").read_text(encoding="utf-8", errors="replace").splitlines()
        raise DemoFailed(f"the driver ended with exit code {code}:\n" + "\n".join(lines[-LOG_LINES_SHOWN:]))


@contextmanager
def _interruptible() -> Generator[None]:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C would: the way out ends the processes and removes the data."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in heard:
        _ = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in heard.items():
            _ = signal.signal(number, handler)
