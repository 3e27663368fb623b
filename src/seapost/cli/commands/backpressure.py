"""`seapost backpressure`: how many deliveries may wait for a destination, and what append does with more."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Annotated

import typer

from seapost.cli.databases import acting, looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import ActorOption, ConfigOption, DestinationArgument, DsnOption, JsonOption, actor_name
from seapost.cli.output import Output, Table
from seapost.cli.settings import load_settings
from seapost.store import backpressure as store
from seapost.store.backpressure import LimitRecord

app = typer.Typer(
    help="Limit what may wait for a destination, so that producers feel a consumer that is away.", no_args_is_help=True
)

WAIT_SECONDS = 5


class Action(StrEnum):
    """What append does when too many deliveries wait."""

    REFUSE = "refuse"
    SLOW = "slow"
    OFF = "off"


@app.command("set")
def set_(
    destination: DestinationArgument,
    watermark: Annotated[int, typer.Argument(metavar="WATERMARK", min=1, max=1_000_000, help="Most that may wait.")],
    action: Annotated[
        Action,
        typer.Option(
            "--action", help="refuse: append fails at once. slow: append waits for room, then fails. off: no limit."
        ),
    ] = Action.REFUSE,
    wait: Annotated[
        int | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=1,
            max=60,
            help=f"Longest wait with --action slow; by default {WAIT_SECONDS}.",
        ),
    ] = None,
    actor: ActorOption = None,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Set the limit of one destination; appends obey it from their next call on. Audited."""
    if wait is not None and action is not Action.SLOW:
        raise typer.BadParameter("--wait goes with --action slow only.")
    seconds = (wait or WAIT_SECONDS) if action is Action.SLOW else 0
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})

    async def act() -> None:
        async with acting(settings.database) as connection:
            await store.set_limit(
                connection,
                destination=destination,
                watermark=watermark,
                action=action.value,
                wait_seconds=seconds,
                actor=actor_name(actor),
            )

    asyncio.run(act())
    document = {"destination": destination, "watermark": watermark, "action": action.value, "waitSeconds": seconds}
    said = f"{destination}: no limit" if action is Action.OFF else f"{destination}: {action} above {watermark}"
    Output(as_json=as_json).emit(document, said)
    return ExitCode.DONE


@app.command()
def show(dsn: DsnOption = None, config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show every limit and whether its gate is closed; a destination without a limit is not listed."""
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})

    async def look() -> list[LimitRecord]:
        async with looking(settings.database) as connection:
            return await store.limits(connection)

    found = asyncio.run(look())
    Output(as_json=as_json).emit(
        {"limits": [_document(one) for one in found]},
        Table(
            ("destination", "watermark", "action", "gate", "waiting when closed", "changed"),
            [(one.destination, one.watermark, _action(one), _gate(one), one.waiting, one.changed_at) for one in found],
        ),
    )
    return ExitCode.DONE


def _document(one: LimitRecord) -> dict[str, object]:
    return {
        "destination": one.destination,
        "watermark": one.watermark,
        "action": one.action,
        "waitSeconds": one.wait_seconds,
        "closed": one.is_closed,
        "waiting": one.waiting,
        "changedAt": one.changed_at,
    }


def _action(one: LimitRecord) -> str:
    return f"slow, {one.wait_seconds} s" if one.action == Action.SLOW else one.action


def _gate(one: LimitRecord) -> str:
    return "closed" if one.is_closed else "open"
