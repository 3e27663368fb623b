"""`orbit events`: how streams and subscriptions stand, and whether a recorded history keeps its promises."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich.live import Live
from rich.text import Text

from orbit.cli.databases import Session, looking
from orbit.cli.exit_codes import ExitCode
from orbit.cli.options import DsnOption, JsonOption, dsn_of
from orbit.store import status as store
from orbit.store.status import SnapshotRecord, StreamRecord, SubscriptionRecord, WaitRecord
from seapost.cli.output import Block, Fields, Output, Table, rendered
from seapost.database.pool import redact_dsn

app = typer.Typer(help="Look at the result streams and their subscriptions.", no_args_is_help=True)

MOVING: Final = "moving"


@dataclass(frozen=True, slots=True)
class Picture:
    """What `events status` shows at one moment."""

    at: datetime
    streams: Sequence[StreamRecord]
    subscriptions: Sequence[SubscriptionRecord]
    waits: Sequence[WaitRecord]
    snapshots: Sequence[SnapshotRecord]


@app.command("status")
def status(
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="N", help="Only this namespace; by default all.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.5, max=3600, help="Seconds between two looks with --watch.")
    ] = 2.0,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show each stream's head and boundary, and for each subscription why nothing moves.

    Reasons, the first that applies: DISABLED, PAUSED, HISTORY_EXPIRED, NOT_PULLED (there is work, but nobody claimed
    any for a minute), WINDOW_FULL (with how many of it are EXPIRED), BACKOFF (until when), AWAITING_ACK, IDLE; or
    `moving`. A cursor says how far the journal has been scanned, not what was acknowledged.

    Also shown, when there are any: sessions that wait for a lock, with who holds it, and sessions whose snapshot is
    older than a minute. Every figure is a bounded probe, so that looking never costs the database more than a moment.
    """
    database = redact_dsn(dsn_of(dsn))
    output = Output(as_json=as_json)

    async def look() -> ExitCode:
        async with looking(dsn) as connection:
            if watch:
                await _watch(output, connection, namespace, every)
            picture = await _picture(connection, namespace)
        if namespace is not None and not picture.streams:
            output.note(f"orbit: there is no namespace {namespace}")
            return ExitCode.NOT_FOUND
        output.emit({"database": database, **_document(picture)}, Fields({"database": database}), *_blocks(picture))
        return ExitCode.DONE

    return asyncio.run(look())


async def _watch(output: Output, connection: Session, namespace: str | None, every: float) -> None:
    """Until interrupted; lines of JSON for a machine, one picture that changes for a person."""
    if output.as_json or not output.is_terminal:
        while True:
            picture = await _picture(connection, namespace)
            output.emit(_document(picture), *_blocks(picture), "")
            await asyncio.sleep(every)
    with Live(auto_refresh=False) as live:
        while True:
            picture = await _picture(connection, namespace)
            live.update(Text.from_ansi("".join(rendered(block) for block in _blocks(picture))), refresh=True)
            await asyncio.sleep(every)


async def _picture(connection: Session, namespace: str | None) -> Picture:
    return Picture(
        at=datetime.now(UTC),
        streams=await store.streams(connection, namespace),
        subscriptions=await store.subscriptions(connection, namespace),
        waits=await store.waits(connection),
        snapshots=await store.snapshots(connection),
    )


def _document(picture: Picture) -> dict[str, object]:
    """Member names as in the HTTP interface and the specification."""
    return {
        "at": picture.at,
        "streams": [asdict(one) for one in picture.streams],
        "subscriptions": [asdict(one) for one in picture.subscriptions],
        "waits": [asdict(one) for one in picture.waits],
        "snapshots": [asdict(one) for one in picture.snapshots],
    }


def _blocks(picture: Picture) -> list[Block]:
    blocks: list[Block] = [
        Fields({"at": picture.at}),
        "",
        Table(
            ("namespace", "head", "retained from", "results"),
            [(one.namespace, one.last_sequence, one.retained_from_sequence, one.results) for one in picture.streams],
        ),
        "",
        Table(
            (
                "namespace",
                "subscription",
                "queue",
                "why",
                "cursor",
                "behind",
                "pending",
                "leased",
                "overdue",
                "expired",
            ),
            [
                (
                    one.namespace,
                    one.name,
                    one.queue,
                    why(one),
                    one.cursor_sequence,
                    one.lag,
                    f"{one.pending_count}/{one.max_pending or '-'}",
                    one.leased,
                    one.overdue,
                    one.expired,
                )
                for one in picture.subscriptions
            ],
        ),
    ]
    if picture.waits:
        blocks += [
            "",
            Table(("waits", "for seconds", "held by", "state", "transaction seconds"), _waits(picture.waits)),
        ]
    if picture.snapshots:
        rows = [
            (_session(one.process_id, one.application), one.state, _whole(one.transaction_seconds))
            for one in picture.snapshots
        ]
        blocks += ["", Table(("old snapshot", "state", "transaction seconds"), rows)]
    return blocks


def why(one: SubscriptionRecord) -> str:
    """The reason with what belongs to it."""
    match one.reason:
        case None:
            return MOVING
        case "WINDOW_FULL":
            return f"WINDOW_FULL ({one.expired} EXPIRED)"
        case "BACKOFF" if one.next_available_at is not None:
            return f"BACKOFF until {one.next_available_at.astimezone(UTC):%H:%M:%S}Z"
        case _:
            return one.reason


def _waits(waits: Sequence[WaitRecord]) -> list[tuple[object, ...]]:
    return [
        (
            _session(one.process_id, one.application),
            _whole(one.waiting_seconds),
            _session(one.holder_process_id, one.holder_application)
            if one.holder_process_id
            else "a prepared transaction",
            one.holder_state,
            _whole(one.holder_transaction_seconds),
        )
        for one in waits
    ]


def _session(process_id: int, application: str | None) -> str:
    return f"{process_id} {application or '?'}"


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)
