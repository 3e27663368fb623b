"""`orbit tasks recover`: take back attempts whose worker has vanished, where no server does."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from orbit.cli.databases import Session, acting
from orbit.cli.exit_codes import ExitCode
from orbit.cli.options import DsnOption, JsonOption
from orbit.model.limits import RECOVER_EVERY_SECONDS
from orbit.store import tasks as store
from seapost.cli.output import Output

app = typer.Typer(help="Look after tasks.", no_args_is_help=True)

BATCH = 100


@app.callback()
def _group() -> None:
    """Keep `recover` a command of its group, though it is the only one."""


@app.command("recover")
def recover(
    once: Annotated[
        bool, typer.Option("--once", help="Recover what is lost now, and end; without it, every 10 seconds.")
    ] = False,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Recover attempts whose lease has ended: requeue, fail, or ask for a review, as the task's policy says.

    Each attempt is one transaction. `orbit serve` does the same every 10 seconds; both together do no harm.
    """
    output = Output(as_json=as_json)

    async def work() -> None:
        async with acting(dsn) as connection:
            while True:
                recovered = await _round(connection)
                output.emit({"recovered": recovered}, f"{recovered} attempts recovered")
                if once:
                    return
                await asyncio.sleep(RECOVER_EVERY_SECONDS)

    asyncio.run(work())
    return ExitCode.DONE


async def _round(connection: Session) -> int:
    """Recover what is lost at this moment; an attempt that somebody else recovers first is not counted."""
    recovered = 0
    while True:
        lost = await store.expired(connection, BATCH)
        for attempt_id in lost:
            recovered += (await store.recover(connection, attempt_id)).recovered
        if len(lost) < BATCH:
            return recovered
