"""`orbit bench`: how fast results are confirmed and delivered here (P6-05)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orbit.cli.exit_codes import ExitCode
from orbit.cli.extras import require
from orbit.cli.options import JsonOption
from orbit.model.limits import RESULT_BYTES_MAX
from orbit.tasks.fence import CommitMode
from seapost.cli.output import Block, Fields, Output, Table

if TYPE_CHECKING:
    from orbit.bench.tables import OrbitFigures

app = typer.Typer(
    help="Measure on a database of its own; every figure is of this machine at this hour.", no_args_is_help=True
)

WRITERS: Final = (1, 4, 8, 16, 32)

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="DSN",
        help="Server to measure, as a superuser; a database is made on it and dropped. Default: an embedded one that "
        "flushes as in production.",
    ),
]
SecondsOption = Annotated[float, typer.Option("--seconds", min=0.5, max=3600, help="Length of each measurement.")]
CommitOption = Annotated[CommitMode, typer.Option("--commit", help="How results reach the disk.")]
SnapshotOption = Annotated[
    bool, typer.Option("--hold-snapshot", help="Keep a REPEATABLE READ snapshot open meanwhile, as a dump does.")
]
BytesOption = Annotated[int, typer.Option("--result-bytes", min=2, max=RESULT_BYTES_MAX, help="Size of each result.")]


@app.command("result-stream")
def stream(
    writers: Annotated[
        list[int] | None,
        typer.Option("--writers", min=1, max=128, metavar="W", help="Writers; may be repeated. Default: 1 4 8 16 32."),
    ] = None,
    namespaces: Annotated[int, typer.Option("--namespaces", min=1, max=64, help="Namespaces.")] = 1,
    queues: Annotated[
        int, typer.Option("--queues", min=1, max=64, help="Queues of each; with one, its row is what they wait for.")
    ] = 1,
    seconds: SecondsOption = 10.0,
    result_bytes: BytesOption = 1024,
    commit: CommitOption = CommitMode.PLAIN,
    commit_delay: Annotated[
        int | None,
        typer.Option("--commit-delay", min=0, max=100_000, metavar="MICROSECONDS", help="With commit_siblings 0."),
    ] = None,
    hold_snapshot: SnapshotOption = False,
    submit: Annotated[bool, typer.Option("--submit", help="Measure submissions under a quota instead.")] = False,
    dsn: ServerOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Results confirmed per second, the time of a confirmation, and the waits for queue, stream and quota rows.

    Waits are sampled from the lock table every 5 ms: the mean per transaction, and how long those who waited had waited
    when they were looked at.
    """
    _require()
    from orbit.bench import hosting, result_stream, tables  # noqa: PLC0415 - needs the extra `server`

    plans = [
        result_stream.StreamSettings(
            namespaces=namespaces,
            queues=queues,
            writers=number,
            seconds=seconds,
            result_bytes=result_bytes,
            commit=commit,
            commit_delay=commit_delay,
            submits=submit,
            hold_snapshot=hold_snapshot,
        )
        for number in writers or WRITERS
    ]
    output = Output(as_json=as_json)
    with hosting.bench_server(dsn) as server, output.progress("measuring", len(plans)) as advance:
        found: list[result_stream.StreamFigures] = []
        for plan in plans:
            with hosting.bench_database(server) as database:
                found.append(asyncio.run(result_stream.measure(database, plan)))
            advance()
        settings = hosting.server_settings(server)
    return _show(
        output, settings, tables.OrbitFigures(streams=found), Table(tables.STREAM_HEADS, tables.stream_rows(found))
    )


@app.command("deliveries")
def delivered(
    subscriptions: Annotated[int, typer.Option("--subscriptions", min=1, max=64, help="Subscriptions.")] = 1,
    number: Annotated[
        int, typer.Option("--deliveries", min=100, max=10_000_000, help="Deliveries of each subscription.")
    ] = 20_000,
    connections: Annotated[
        int, typer.Option("--connections", min=1, max=64, help="Consumers of each subscription.")
    ] = 1,
    result_bytes: BytesOption = 1024,
    commit: CommitOption = CommitMode.FENCED,
    hold_snapshot: SnapshotOption = False,
    dsn: ServerOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Deliveries leased and acknowledged per second, by the SDK over real WebSockets, from a backlog."""
    _require()
    from orbit.bench import deliveries, hosting, tables  # noqa: PLC0415 - needs the extra `server`

    plan = deliveries.DeliverySettings(
        subscriptions=subscriptions,
        deliveries=number,
        connections=connections,
        result_bytes=result_bytes,
        commit=commit,
        hold_snapshot=hold_snapshot,
    )
    output = Output(as_json=as_json)
    with (
        hosting.bench_server(dsn) as server,
        hosting.bench_database(server) as database,
        output.progress("measuring"),
    ):
        found = [asyncio.run(deliveries.measure(database, plan))]
        settings = hosting.server_settings(server)
    table = Table(tables.DELIVERY_HEADS, tables.delivery_rows(found))
    return _show(output, settings, tables.OrbitFigures(deliveries=found), table)


@app.command("latency")
def latency(
    per_second: Annotated[
        float, typer.Option("--per-second", min=1, max=10_000, help="Results confirmed per second.")
    ] = 100.0,
    seconds: SecondsOption = 10.0,
    commit: CommitOption = CommitMode.FENCED,
    dsn: ServerOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """The time from the commit of a result to the start of its handler, at a steady rate."""
    _require()
    from orbit.bench import deliveries, hosting, tables  # noqa: PLC0415 - needs the extra `server`

    output = Output(as_json=as_json)
    with (
        hosting.bench_server(dsn) as server,
        hosting.bench_database(server) as database,
        output.progress("measuring"),
    ):
        measuring = deliveries.measure_latency(database, per_second=per_second, seconds=seconds, commit=commit)
        found = [asyncio.run(measuring)]
        settings = hosting.server_settings(server)
    table = Table(tables.LATENCY_HEADS, tables.latency_rows(found))
    return _show(output, settings, tables.OrbitFigures(latencies=found), table)


def _require() -> None:
    require("bench", "server,embedded", "fastapi", "uvicorn", "websockets")


def _show(output: Output, settings: dict[str, str], figures: OrbitFigures, *blocks: Block) -> ExitCode:
    output.emit({"server": settings, **figures.document()}, Fields(settings), "", *blocks)
    return ExitCode.DONE
