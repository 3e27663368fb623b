"""How far a run is, counted in its database, and what is seen of it meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from psycopg import AsyncConnection
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orbit.demo.platform import ROLES, Role

LINE_SECONDS: Final = 5.0

_TASKS: Final = """
select count(*) filter (where t.state in ('succeeded', 'failed', 'cancelled')), count(*),
       (select count(*) from orbit.result_events)
from orbit.tasks as t"""
_SUBSCRIPTIONS: Final = """
select s.name, s.status,
       (select count(*) from orbit.event_deliveries as d
        where d.subscription_id = s.subscription_id and d.state = 'ACKED'),
       (select count(*) from orbit.event_deliveries as d
        where d.subscription_id = s.subscription_id and d.state = 'LEASED'),
       (select count(*) from orbit.result_events as r where r.queue_id = s.queue_id)
from orbit.event_subscriptions as s"""


@dataclass(frozen=True, slots=True)
class Share:
    """How far one subscriber is: results acknowledged, leased to it now, and in its queue's journal."""

    status: str = "ACTIVE"
    acked: int = 0
    leased: int = 0
    results: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """How far everything is: tasks with a final state, all tasks, results in the journal, and each subscriber."""

    final: int
    tasks: int
    results: int
    shares: dict[str, Share]

    def is_done(self, tasks: int) -> bool:
        """Whether every task has its end and every subscriber has acknowledged everything."""
        caught_up = all(share.acked == share.results for share in self.shares.values())
        return self.final == tasks and len(self.shares) == len(ROLES) and caught_up

    def share(self, role: Role) -> Share:
        """One subscriber's share."""
        return self.shares.get(role.name, Share())


async def look(observer: AsyncConnection[Any]) -> Standing:
    """Count."""
    tasks = await (await observer.execute(_TASKS)).fetchone()
    rows = await (await observer.execute(_SUBSCRIPTIONS)).fetchall()
    final, all_tasks, results = tasks or (0, 0, 0)
    return Standing(final, all_tasks, results, {row[0]: Share(*row[1:]) for row in rows})


class View:
    """Bars on a terminal, a line every few seconds elsewhere."""

    def __init__(self, console: Console, *, tasks: int) -> None:
        self._console = console
        self._tasks = tasks
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
        self._main = self._progress.add_task("tasks", total=tasks, note="")
        self._bars = {role.name: self._progress.add_task(role.name, total=None, note="") for role in ROLES}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def refresh(self, standing: Standing, note: str) -> None:
        """Show a standing, and the last thing that happened beside it."""
        self._progress.update(self._main, completed=standing.final, note=note)
        for role in ROLES:
            share = standing.share(role)
            said = "paused" if share.status == "PAUSED" else f"{share.leased} leased" if share.leased else ""
            self._progress.update(self._bars[role.name], completed=share.acked, total=share.results or None, note=said)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed_at >= LINE_SECONDS:
            self._printed_at = now
            shares = ", ".join(
                f"{role.name} {standing.share(role).acked:,} of {standing.share(role).results:,}" for role in ROLES
            )
            self._console.print(
                f"{standing.final:,} of {self._tasks:,} tasks done; acknowledged: {shares}"
                + (f"; {note}" if note else "")
            )
