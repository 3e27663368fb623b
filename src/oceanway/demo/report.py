"""What a person sees while the day is settled, and reads when it is over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from types import TracebackType

    from oceanway.demo.chaos import Incident
    from oceanway.demo.processes import Processes

LINE_SECONDS: Final = 5.0
DEFECTS_SHOWN: Final = 20


class Audited(Protocol):
    """What the auditor found in the five databases and the driver's ledger."""

    runs: int
    events: int
    deliveries: int
    acknowledged: int
    quarantined: int
    cases: int
    resolved: int
    unbalanced: int
    lost: int
    effects_doubled: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The figures of a run, with the kills that it survived."""

    audit: Audited
    kills: int

    @property
    def holds(self) -> bool:
        """Whether every account balances, nothing is lost and nothing happened twice."""
        audit = self.audit
        return audit.unbalanced == audit.lost == audit.effects_doubled == 0

    def line(self) -> str:
        """The last line of the demo."""
        return "evidence: " + " ".join(f"{name}={value}" for name, value in self.figures().items())

    def figures(self) -> dict[str, int]:
        """The figures by name."""
        audit = self.audit
        return {
            "runs": audit.runs,
            "events": audit.events,
            "deliveries": audit.deliveries,
            "acknowledged": audit.acknowledged,
            "quarantined": audit.quarantined,
            "cases": audit.cases,
            "resolved": audit.resolved,
            "unbalanced": audit.unbalanced,
            "lost": audit.lost,
            "effects_doubled": audit.effects_doubled,
            "kills": self.kills,
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the day is: reservations finalized, events written, deliveries acknowledged and under way, works left."""

    finalized: int = 0
    events: int = 0
    acknowledged: int = 0
    under_way: int = 0
    works: int = 0


class View:
    """Bars on a terminal, a line every few seconds elsewhere."""

    def __init__(self, console: Console, *, runs: int) -> None:
        self._console = console
        self._runs = runs
        self._printed_at = 0.0
        self._progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=36),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", style="yellow"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._finalized = self._progress.add_task("finalized", total=runs, note="")
        self._delivered = self._progress.add_task("delivered", total=None, note="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def refresh(self, standing: Standing, note: str) -> None:
        """Show a standing, and the last thing that happened beside it."""
        total = standing.acknowledged + standing.under_way
        self._progress.update(self._finalized, completed=standing.finalized, note=note)
        self._progress.update(self._delivered, completed=standing.acknowledged, total=total or None)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed_at >= LINE_SECONDS:
            self._printed_at = now
            self._console.print(
                f"finalized {standing.finalized:,} of {self._runs:,} runs; {standing.events:,} events, "
                f"{standing.acknowledged:,} of {total:,} deliveries acknowledged" + (f"; {note}" if note else "")
            )


def show(
    console: Console,
    *,
    incidents: Sequence[Incident],
    processes: Processes,
    evidence: Evidence,
    seconds: float,
) -> None:
    """Print what was done to the run, its processes, and what is wrong, if anything is."""
    happened = Table("second", "SIGKILL to", "effect", title="what was done to it", title_justify="left")
    for incident in incidents:
        happened.add_row(f"{incident.at_seconds:.1f}", incident.target, incident.effect)
    console.print(happened)
    lives = Table("process", "starts", "kills", "ended by itself", title="processes", title_justify="left")
    for member in processes.members.values():
        lives.add_row(member.name, str(member.starts), str(member.kills), str(member.crashes))
    console.print(lives)
    audit = evidence.audit
    console.print(
        f"{audit.runs:,} runs were settled in {seconds:.0f} s: {audit.events:,} events in {audit.deliveries:,} "
        f"deliveries, {audit.cases:,} cases"
    )
    defects: Sequence[str] = getattr(audit, "defects", ())
    for defect in defects[:DEFECTS_SHOWN]:
        console.print(f"[red]defect[/] {defect}")
