"""What is seen while it runs: two bars and the last incident on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import psycopg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

LOOK_SECONDS: Final = 0.25
LOOK_SHARE_MAX: Final = 0.05
"""Counting a year takes a while; looks take at most this share of the time."""
LINE_SECONDS: Final = 5.0

_COUNTS: Final = """
select (select count(*) from flight), (select count(*) from seapost.delivery_acknowledgement),
       (select count(*) from seapost.delivery_ready) + (select count(*) from seapost.delivery_lease)"""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far it is: events appended, deliveries acknowledged, deliveries still on their way."""

    events: int = 0
    acknowledged: int = 0
    under_way: int = 0


def look(source: psycopg.Connection) -> Standing:
    """Count in the producer's database."""
    row = source.execute(_COUNTS).fetchone()
    return Standing(*row) if row else Standing()


class ProgressView:
    """Shows the standing; asks the database a few times a second at most.

    Args:
        events, deliveries: what both will be in the end.
    """

    def __init__(self, console: Console, source: psycopg.Connection, *, events: int, deliveries: int) -> None:
        self._console = console
        self._source = source
        self._totals = (events, deliveries)
        self._look_at = self._printed_at = 0.0
        self.standing = Standing()
        self._progress = Progress(
            TextColumn("{task.description:<13}"),
            BarColumn(bar_width=36),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", style="yellow"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bars: list[TaskID] = [
            self._progress.add_task("appended", total=events, note=""),
            self._progress.add_task("acknowledged", total=deliveries, note=""),
        ]

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def refresh(self, note: str) -> Standing:
        """Look again if it is time to, and show what was found beside `note`."""
        now = time.monotonic()
        if now < self._look_at:
            return self.standing
        self.standing = look(self._source)
        took = time.monotonic() - now
        self._look_at = now + max(LOOK_SECONDS, took / LOOK_SHARE_MAX)
        for bar, count in zip(self._bars, (self.standing.events, self.standing.acknowledged), strict=True):
            self._progress.update(bar, completed=count)
        self._progress.update(self._bars[1], note=note)
        if not self._console.is_terminal and now - self._printed_at >= LINE_SECONDS:
            self._printed_at = now
            events, deliveries = self._totals
            self._console.print(
                f"appended {self.standing.events:,} of {events:,}, "
                f"acknowledged {self.standing.acknowledged:,} of {deliveries:,}" + (f"; {note}" if note else "")
            )
        return self.standing
