"""`seapost delivery`: one delivery, where it stands, and every attempt at it."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated

import typer
from pydantic.alias_generators import to_camel

from seapost.cli.databases import looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import ConfigOption, DestinationArgument, DsnOption, EventArgument, JsonOption
from seapost.cli.output import Fields, Output, Table
from seapost.cli.settings import load_settings
from seapost.model.errors import UnknownDelivery
from seapost.store import status
from seapost.store.status import AttemptRecord, DeliveryRecord

app = typer.Typer(help="Look at a delivery and its attempts.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def show(
    event_id: EventArgument,
    destination: DestinationArgument,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, max=1_000, help="Most attempts to show, the newest.")
    ] = 50,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show one delivery with its attempts and, once acknowledged, the receipt that proves it."""
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})

    async def look() -> tuple[DeliveryRecord | None, list[AttemptRecord]]:
        async with looking(settings.database) as connection:
            return (
                await status.delivery(connection, event_id=event_id, destination=destination),
                await status.attempts(connection, event_id=event_id, destination=destination, limit=attempts),
            )

    delivery, tries = asyncio.run(look())
    if delivery is None:
        raise UnknownDelivery(f"There is no delivery of event {event_id} to {destination} in this database.")
    fields = dataclasses.asdict(delivery)
    Output(as_json=as_json).emit(
        {
            **{to_camel(name): value for name, value in fields.items()},
            "attempts": [{to_camel(name): value for name, value in dataclasses.asdict(one).items()} for one in tries],
        },
        Fields({name.replace("_", " "): value for name, value in fields.items() if value is not None}),
        "",
        Table(
            ("attempt", "number", "started", "finished", "outcome", "error", "reference", "worker"),
            [
                (
                    one.attempt_id,
                    one.attempt_number,
                    one.started_at,
                    one.finished_at,
                    one.outcome or "running or lost",
                    one.normalized_error_code,
                    one.sanitized_error_ref,
                    one.lease_owner,
                )
                for one in tries
            ],
        ),
    )
    return ExitCode.DONE
