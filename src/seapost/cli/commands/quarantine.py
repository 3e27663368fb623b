"""`seapost quarantine`: see what could not be processed, and say that somebody has seen it.

No command skips, forces, edits or replays a delivery, and none will without a contract of its own (RTY-06, RTY-07).
Acknowledging changes nothing about the delivery (REF-08).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer
from pydantic.alias_generators import to_camel

from seapost.cli.databases import Session, acting, looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import (
    ActorOption,
    ConfigOption,
    DestinationArgument,
    DsnOption,
    EventArgument,
    JsonOption,
    LimitOption,
    actor_name,
)
from seapost.cli.output import Advance, Fields, Output, Table
from seapost.cli.settings import load_settings
from seapost.model.errors import ImmutableFact, UnknownDelivery
from seapost.store import quarantine as store
from seapost.store import status
from seapost.store.status import QuarantineKey, QuarantineRecord

app = typer.Typer(
    help="Look at quarantined deliveries and acknowledge that somebody has seen them. Nothing here moves a delivery.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class DeliveryKey:
    """A delivery as lists and audit records write it: `EVENT_ID/DESTINATION`."""

    event_id: UUID
    destination: str

    def __str__(self) -> str:
        return f"{self.event_id}/{self.destination}"


def _delivery_key(text: str) -> DeliveryKey:
    event_id, slash, destination = text.partition("/")
    try:
        if slash and destination:
            return DeliveryKey(UUID(event_id), destination)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is no EVENT_ID/DESTINATION.")


def _page_key(text: str) -> QuarantineKey:
    parts = text.split("/", 2)
    try:
        moment = datetime.fromisoformat(parts[0])
        return QuarantineKey(moment.astimezone(UTC), UUID(parts[1]), parts[2])
    except (ValueError, IndexError):
        raise typer.BadParameter("This is not the `next` of a page; copy it whole.") from None


@app.command("list")
def list_(
    destination: Annotated[
        str | None, typer.Option("--destination", metavar="D", help="Only this destination.")
    ] = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only what nobody has acknowledged.")] = False,
    limit: LimitOption = 50,
    before: Annotated[
        QuarantineKey | None,
        typer.Option("--before", metavar="NEXT", parser=_page_key, help="Go on where a page ended: its `next`."),
    ] = None,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """List quarantined deliveries, newest first, one page at a time."""
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})

    async def look() -> list[QuarantineRecord]:
        async with looking(settings.database) as connection:
            return await status.quarantine_page(
                connection, limit=limit + 1, before=before, destination=destination, open_only=open_only
            )

    found = asyncio.run(look())
    page, following = found[:limit], None
    if len(found) > limit:
        last = page[-1]
        following = f"{last.quarantined_at.astimezone(UTC).isoformat()}/{last.event_id}/{last.destination}"
    blocks: list[str | Fields | Table] = [
        Table(
            ("delivery", "reason", "quarantined", "acknowledged", "case"),
            [
                (
                    DeliveryKey(one.event_id, one.destination),
                    one.reason,
                    one.quarantined_at,
                    one.acknowledged_at,
                    one.case_id,
                )
                for one in page
            ],
        )
    ]
    if following is not None:
        blocks.append(f"more: --before {following}")
    Output(as_json=as_json).emit({"deliveries": [_document(one) for one in page], "next": following}, *blocks)
    return ExitCode.DONE


@app.command()
def show(
    event_id: EventArgument,
    destination: DestinationArgument,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show one quarantined delivery; `delivery show` has its attempts."""
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})

    async def look() -> QuarantineRecord | None:
        async with looking(settings.database) as connection:
            return await status.quarantined(connection, event_id=event_id, destination=destination)

    found = asyncio.run(look())
    if found is None:
        raise UnknownDelivery(f"Event {event_id} is not in quarantine for {destination}.")
    Output(as_json=as_json).emit(
        _document(found),
        Fields({name.replace("_", " "): value for name, value in dataclasses.asdict(found).items()}),
    )
    return ExitCode.DONE


@app.command()
def acknowledge(
    deliveries: Annotated[
        list[DeliveryKey],
        typer.Argument(
            metavar="EVENT_ID/DESTINATION...",
            parser=_delivery_key,
            help="Deliveries, as `quarantine list` writes them.",
        ),
    ],
    case: Annotated[
        str | None, typer.Option("--case", metavar="ID", help="Incident or reconciliation case that deals with them.")
    ] = None,
    actor: ActorOption = None,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Record that somebody has seen quarantined deliveries; they stay where they are.

    Saying the same again changes nothing. Some refused and some recorded is its own exit code.
    """
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})
    output = Output(as_json=as_json)

    async def act(advance: Advance) -> list[tuple[DeliveryKey, str]]:
        results: list[tuple[DeliveryKey, str]] = []
        async with acting(settings.database) as connection:
            for key in dict.fromkeys(deliveries):
                results.append((key, await _acknowledge(connection, key, case, actor_name(actor))))
                advance()
        return results

    with output.progress("acknowledging", total=len(deliveries)) as advance:
        results = asyncio.run(act(advance))
    output.emit(
        {
            "results": [
                {"eventId": key.event_id, "destination": key.destination, "result": result} for key, result in results
            ]
        },
        Table(("delivery", "result"), results),
    )
    return _judge([result for _, result in results])


async def _acknowledge(connection: Session, key: DeliveryKey, case: str | None, actor: str) -> str:
    try:
        await store.acknowledge(
            connection, event_id=key.event_id, destination=key.destination, case_id=case, actor=actor
        )
    except UnknownDelivery:
        return "not_found"
    except ImmutableFact:
        stored = await status.quarantined(connection, event_id=key.event_id, destination=key.destination)
        return "unchanged" if stored is not None and stored.case_id == case else "acknowledged_otherwise"
    return "acknowledged"


def _judge(results: Sequence[str]) -> ExitCode:
    done = sum(result in {"acknowledged", "unchanged"} for result in results)
    if done == len(results):
        return ExitCode.DONE
    if done:
        return ExitCode.PARTIAL
    return ExitCode.NOT_FOUND if set(results) == {"not_found"} else ExitCode.FAILED


def _document(found: QuarantineRecord) -> dict[str, object]:
    return {to_camel(name): value for name, value in dataclasses.asdict(found).items()}
