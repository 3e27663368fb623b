"""`seapost status`: how each destination stands, and whether the facts agree with each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from seapost.cli.databases import Session, acting, looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import ConfigOption, DsnOption, JsonOption
from seapost.cli.output import Block, Fields, Output, Table, rendered
from seapost.cli.settings import load_settings
from seapost.store import delivery_set
from seapost.store import status as store
from seapost.store.status import COUNT_CEILING, Defect, DestinationRecord

DEFECTS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Picture:
    """What `status` shows at one moment."""

    database: str
    at: datetime
    delivery_set_version: str | None
    guard_level: str | None
    destinations: Sequence[DestinationRecord]
    defects: Sequence[Defect] | None


def status(
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.5, max=3600, help="Seconds between two looks with --watch.")
    ] = 2.0,
    destination: Annotated[
        list[str] | None, typer.Option("--destination", metavar="D", help="Only this destination; may be repeated.")
    ] = None,
    audit: Annotated[
        bool,
        typer.Option("--audit", help="Also look for facts that contradict each other. This reads every row: seldom."),
    ] = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show what waits, what runs and what is quarantined for each destination.

    Counts stop at 100,000, so that looking never costs the database more than a moment. With --audit the exit code
    tells whether a defect was found.
    """
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})
    output = Output(as_json=as_json)
    wanted = frozenset(destination or ())

    async def look() -> ExitCode:
        # The audit may take longer than a look may.
        session = acting if audit else looking
        async with session(settings.database) as connection:
            if watch:
                await _watch(output, connection, wanted, every)
                return ExitCode.DONE
            with output.progress("reading every fact") if audit else output.quiet():
                picture = await _picture(connection, wanted, audit=audit)
            output.emit(_document(picture), *_blocks(picture))
            return ExitCode.CHECK_FAILED if picture.defects else ExitCode.DONE

    return asyncio.run(look())


async def _watch(output: Output, connection: Session, wanted: frozenset[str], every: float) -> None:
    """Until interrupted; lines of JSON for a machine, one picture that changes for a person."""
    if output.as_json or not output.is_terminal:
        while True:
            picture = await _picture(connection, wanted, audit=False)
            output.emit(_document(picture), *_blocks(picture), "")
            await asyncio.sleep(every)
    with Live(auto_refresh=False) as live:
        while True:
            picture = await _picture(connection, wanted, audit=False)
            live.update(Text.from_ansi("".join(rendered(block) for block in _blocks(picture))), refresh=True)
            await asyncio.sleep(every)


async def _picture(connection: Session, wanted: frozenset[str], *, audit: bool) -> Picture:
    versions = await delivery_set.versions(connection)
    guards = await store.guards(connection)
    found = await store.destinations(connection)
    return Picture(
        database=f"{connection.info.dbname} at {connection.info.host or 'a local socket'}:{connection.info.port}",
        at=datetime.now(UTC),
        delivery_set_version=next((one.delivery_set_version for one in versions if one.status == "active"), None),
        guard_level=None if guards is None else guards.level,
        destinations=[one for one in found if not wanted or one.destination in wanted],
        defects=await store.audit(connection, limit=DEFECTS_SHOWN) if audit else None,
    )


def _document(picture: Picture) -> dict[str, object]:
    document: dict[str, object] = {
        "database": picture.database,
        "at": picture.at,
        "deliverySetVersion": picture.delivery_set_version,
        "guardLevel": picture.guard_level,
        "countCeiling": COUNT_CEILING,
        "destinations": [
            {
                "destination": one.destination,
                "pending": one.pending,
                "due": one.due,
                "oldestSeconds": round(one.oldest_seconds, 3),
                "nextAvailableAt": one.next_available_at,
                "suspects": one.suspects,
                "leased": one.leased,
                "quarantined": one.quarantined,
                "quarantinedUnacknowledged": one.quarantined_unacknowledged,
                "fairLanes": one.fair_lanes,
                "lanesDue": one.lanes_due,
                "starvedSeconds": round(one.starved_seconds, 3),
            }
            for one in picture.destinations
        ],
    }
    if picture.defects is not None:
        document["defects"] = [
            {"defect": one.defect, "eventId": one.event_id, "destination": one.destination} for one in picture.defects
        ]
    return document


def _blocks(picture: Picture) -> list[Block]:
    blocks: list[Block] = [
        Fields(
            {
                "database": picture.database,
                "at": picture.at,
                "delivery set": picture.delivery_set_version or "none is active",
                "guards": picture.guard_level,
            }
        ),
        "",
        Table(
            (
                "destination",
                "pending",
                "due",
                "oldest",
                "starved",
                "next",
                "leased",
                "suspects",
                "quarantined",
                "unseen",
            ),
            [
                (
                    one.destination,
                    _count(one.pending),
                    _count(one.due),
                    _duration(one.oldest_seconds),
                    _duration(one.starved_seconds),
                    one.next_available_at,
                    one.leased,
                    _count(one.suspects),
                    _count(one.quarantined),
                    _count(one.quarantined_unacknowledged),
                )
                for one in picture.destinations
            ],
        ),
    ]
    if picture.defects is not None:
        blocks.append("")
        if picture.defects:
            blocks.append(
                Table(
                    ("defect", "event", "destination"),
                    [(one.defect, one.event_id, one.destination) for one in picture.defects],
                )
            )
        more = f" (the first {DEFECTS_SHOWN})" if len(picture.defects) == DEFECTS_SHOWN else ""
        blocks.append(f"audit: {len(picture.defects)} defects{more}")
    return blocks


def _count(number: int) -> str:
    return f"{number}+" if number >= COUNT_CEILING else str(number)


def _duration(seconds: float) -> str:
    whole = int(seconds)
    days, hours, minutes = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {whole % 60}s" if minutes else f"{seconds:.1f}s"
