"""`oceanway serve`, `dispatch` and `work`: the processes of an installation.

The first SIGTERM or SIGINT stops each of them in order, with exit code 0; a second one ends it at once. What it held is
leased and lapses by itself.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Annotated

import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption, WaitOption
from oceanway.installation.layout import Database
from oceanway.installation.settings import load_settings
from seapost.cli.output import Output
from seapost.telemetry import logging
from seapost.telemetry.libraries import adopt_library_logs


class Owner(StrEnum):
    """Who has a port."""

    EXECUTION = "execution"
    GATEWAY = "gateway"
    METERING = "metering"
    BILLING = "billing"
    OPERATIONS = "operations"


class Loop(StrEnum):
    """What works are leased for."""

    METERING = "metering"
    FINALIZATION = "finalization"
    CATCH_UP = "catch-up"


OwnerArgument = Annotated[Owner, typer.Argument(metavar="OWNER", help=f"One of {', '.join(Owner)}.")]
ProducerArgument = Annotated[
    Database, typer.Argument(metavar="PRODUCER", help=f"One of {', '.join(Database)}: whose database is dispatched.")
]
LoopArgument = Annotated[Loop, typer.Argument(metavar="LOOP", help=f"One of {', '.join(Loop)}.")]


def serve(
    owner: OwnerArgument, wait: WaitOption = 30.0, config: ConfigOption = None, as_json: JsonOption = False
) -> ExitCode:
    """Receive the deliveries of one owner's consumers and answer its reads, on one port."""
    settings = load_settings(config)
    _log()
    from oceanway.cli import serving  # noqa: PLC0415 - most of the program's start, for this command alone

    report = asyncio.run(serving.run(settings, owner.value, wait_seconds=wait))
    Output(as_json=as_json).emit(report, "stopped")
    return ExitCode.DONE


def dispatch(producer: ProducerArgument, config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Carry the events of one database to the owners that consume them."""
    settings = load_settings(config)
    _log()
    from oceanway.cli import dispatching  # noqa: PLC0415 - most of the program's start, for this command alone

    report = asyncio.run(dispatching.run(settings, producer))
    Output(as_json=as_json).emit(report, "stopped")
    return ExitCode.DONE if report["drained"] else ExitCode.NOT_DRAINED


def work(
    loop: LoopArgument, wait: WaitOption = 30.0, config: ConfigOption = None, as_json: JsonOption = False
) -> ExitCode:
    """Run the works of one loop: lease, read, decide, write."""
    settings = load_settings(config)
    _log()
    from oceanway.cli import working  # noqa: PLC0415 - most of the program's start, for this command alone

    report = working.run(settings, loop.value, wait_seconds=wait)
    Output(as_json=as_json).emit(report, "stopped")
    return ExitCode.DONE


def _log() -> None:
    logging.configure("info")
    adopt_library_logs()
