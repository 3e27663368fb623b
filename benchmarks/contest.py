"""Systems beside each other: append, drain, several processes and latency, interleaved on one server in one run.

Each system has a process and a database of its own. In every repetition each takes its turn, so that whatever else
the machine does meets all of them. The number of jobs follows from a system's own speed, so that each measurement
takes about as long. A drain runs from the first job in its handler until the database has nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.entrants import OVERLAPPED, Entrant
from benchmarks.hosting import Hosted, SystemFailed
from benchmarks.server import fresh_database
from benchmarks.settings import Settings

FILL_BATCH: Final = 1_000
TRIAL: Final = {"append 1/tx": (100, 1), "append 100/tx": (2_000, 100)}
TRIAL_GROWTH: Final = 4
JOBS_MIN: Final = 200
LATENCY_PER_SECOND: Final = 50.0
APPEND_ONE: Final = "append 1/tx"
APPEND_MANY: Final = "append 100/tx"
DRAIN: Final = "drain"
LATENCY: Final = "latency"
WORKER_CPU: Final = "worker CPU"
LESS_IS_BETTER: Final = frozenset({LATENCY, WORKER_CPU})

Say = Callable[[str], None]


@dataclass(slots=True)
class Measured:
    """What is known of one system.

    Attributes:
        absent: why it did not run at all, or what went wrong; None otherwise.
        figures: by workload, one figure per repetition: jobs per second, microseconds of CPU per job, or the
            milliseconds of each event for the latency.
    """

    entrant: Entrant
    settings: str = ""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    absent: str | None = None
    figures: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def note(self, workload: str, figure: float) -> None:
        """Add the figure of one repetition."""
        self.figures.setdefault(workload, []).append(figure)


def drain_of(processes: int) -> str:
    """The name of the drain by so many processes."""
    return DRAIN if processes == 1 else f"{DRAIN}, {processes} processes"


def run(settings: Settings, dsn: str, entrants: Sequence[Entrant], say: Say) -> list[Measured]:
    """Measure every entrant that is there."""
    measured = [Measured(entrant, absent=entrant.missing()) for entrant in entrants]
    with ExitStack() as stack:
        turns: list[_Turn] = []
        for one in measured:
            if one.absent is None:
                say(f"starting {one.entrant.name}")
                with _excused(one):
                    turns.append(_Turn(one, settings, stack, dsn))
        for repetition in range(1, settings.repetitions + 1):
            for turn in turns:
                if turn.measured.absent is None:
                    say(f"{turn.measured.entrant.name}, repetition {repetition}")
                    with _excused(turn.measured):
                        turn.repeat()
        for turn in turns:
            if turn.measured.absent is None:
                say(f"{turn.measured.entrant.name}, several processes")
                with _excused(turn.measured):
                    turn.once()
    return measured


@contextmanager
def _excused(measured: Measured) -> Generator[None]:
    """A system that fails is reported as failed; the others go on."""
    try:
        yield
    except SystemFailed as error:
        measured.absent = f"failed: {error}"


class _Turn:
    """One system that runs: its processes, its database, and how much it does in the time that a measurement takes."""

    def __init__(self, measured: Measured, settings: Settings, stack: ExitStack, dsn: str) -> None:
        self.measured = measured
        self._settings = settings
        self._database = stack.enter_context(fresh_database(dsn))
        self._stack = stack
        self._host = stack.enter_context(Hosted(measured.entrant))
        about = self._host.call("setup", dsn=self._database, install=True)
        measured.versions, measured.settings = about["versions"], about["settings"]
        self._jobs: dict[str, int] = {}
        if measured.entrant.appends:
            self._jobs = {name: self._try_append(count, batch) for name, (count, batch) in TRIAL.items()}
            self._host.call("clear")
        if measured.entrant.drains:
            self._jobs[DRAIN] = self._try_drain()

    def repeat(self) -> None:
        """One repetition of append, drain and latency."""
        for name, (_, batch) in TRIAL.items() if self.measured.entrant.appends else ():
            count = self._jobs[name]
            self.measured.note(name, count / self._host.call("append", count=count, batch=batch))
            self._host.call("clear")
        if self.measured.entrant.drains:
            count = self._jobs[DRAIN]
            self._fill(count)
            rate, cpu = self._drain(count)
            self.measured.note(DRAIN, rate)
            self.measured.note(WORKER_CPU, cpu)
            self._jobs[DRAIN] = max(count, self._enough(rate))  # a warm system may be much faster than the trial
        if self.measured.entrant.is_rival or self.measured.entrant == OVERLAPPED:
            events = max(1, self._settings.latency_events // self._settings.repetitions)
            for found in self._host.call("latency", count=events, per_second=LATENCY_PER_SECOND):
                self.measured.note(LATENCY, found)

    def once(self) -> None:
        """What is measured once per run: several processes."""
        entrant = self.measured.entrant
        processes_all = self._settings.rival_processes if entrant.is_rival else self._settings.processes
        for processes in processes_all if entrant.drains and entrant.crowds else ():
            self.measured.note(drain_of(processes), self._drain_together(processes))

    def _try_append(self, count: int, batch: int) -> int:
        return self._enough(count / self._host.call("append", count=count, batch=batch))

    def _try_drain(self) -> int:
        """Drain ever more, until it takes about as long as a measurement should; what starts up must not count."""
        count = self.measured.entrant.trial
        while True:
            self._fill(count)
            enough = max(count, self._enough(self._drain(count)[0]))
            if count * 2 >= enough:
                return enough
            count = min(enough, count * TRIAL_GROWTH)

    def _enough(self, rate: float) -> int:
        jobs = int(rate * self._settings.seconds)
        return min(self._settings.jobs_max, max(JOBS_MIN, jobs - jobs % 100))

    def _fill(self, count: int) -> None:
        self._host.call("append", count=count, batch=FILL_BATCH)

    def _drain(self, count: int) -> tuple[float, float]:
        """Deliveries per second, and microseconds of the worker's CPU for each."""
        done = self._host.call("drain", count=count, shared=False)
        handled = done["handled"]
        return handled / (done["last"] - done["first"]), done["cpu"] * 1_000_000 / handled

    def _drain_together(self, processes: int) -> float:
        count = self._jobs[DRAIN] * 2
        self._fill(count)
        with ExitStack() as stack:
            others = [stack.enter_context(Hosted(self.measured.entrant)) for _ in range(processes - 1)]
            for other in others:
                other.call("setup", dsn=self._database, install=False)
            hosts = [self._host, *others]
            for host in hosts:
                host.ask("drain", count=count, shared=True)
            done = [answer for host in hosts if (answer := host.answer("drain"))["handled"]]
        handled = sum(one["handled"] for one in done)
        return handled / (max(one["last"] for one in done) - min(one["first"] for one in done))
