"""The process that runs one work loop: leases works, reads other owners, decides, and writes."""

from __future__ import annotations

import gc
import signal
from contextlib import ExitStack
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

from oceanway.cli.composition import events_of, release, steps_of
from oceanway.cli.starting import wait_for_release
from oceanway.installation.keys import load_signer
from oceanway.installation.layout import Kind, process_of
from oceanway.reads.http import HttpReader
from oceanway.works.loop import Pace, WorkLoop, run_loops
from seapost.database.pool import open_sync_pool

if TYPE_CHECKING:
    from types import FrameType

    from oceanway.installation.settings import Settings, WorkSettings


def run(settings: Settings, loop: str, *, wait_seconds: float) -> dict[str, object]:
    """Work until told to stop; the report."""
    stop = Event()
    _stop_at_signals(stop)
    process = process_of(Kind.WORK, loop)
    dsn = settings.process_dsn(process)
    signer = load_signer(settings.trust.folder, process.workload, issuer=settings.trust.issuer)
    loops: list[WorkLoop] = []
    if wait_for_release(dsn, release(), events_of(process.database), wait_seconds=wait_seconds, stop=stop):
        with ExitStack() as stack:
            reader = stack.enter_context(HttpReader(settings.owners, signer=signer))
            pool = stack.enter_context(open_sync_pool(dsn, part=f"work-{loop}", size_max=settings.work.pool_size))
            pace, lease = _pace(settings.work), timedelta(seconds=settings.work.lease_seconds)
            loops = [WorkLoop(name, step, pace) for name, step in steps_of(loop, pool, reader, lease=lease)]
            gc.freeze()  # what is loaded stays to the end, so that no look through it stops the process
            run_loops(loops, stop)
    return {
        "workload": process.workload,
        "done": sum(one.done for one in loops),
        "failures": sum(one.failures for one in loops),
        "stopped": True,
    }


def _pace(work: WorkSettings) -> Pace:
    return Pace(
        work.batch,
        work.idle_seconds_min,
        work.idle_seconds_max,
        work.failure_seconds_min,
        work.failure_seconds_max,
    )


def _stop_at_signals(stop: Event) -> None:
    """The first SIGTERM or SIGINT stops in order; a second one ends the process at once, and its leases lapse."""

    def order(number: int, _frame: FrameType | None) -> Any:  # noqa: ANN401 - a signal handler's answer is ignored
        stop.set()
        _ = signal.signal(number, signal.SIG_DFL)

    for one in (signal.SIGTERM, signal.SIGINT):
        _ = signal.signal(one, order)
