"""`seapost projection`: versions of a view side by side: build the next one, prove it, switch to it, go back.

Every command is safe to run again. A rebuild goes on where it was; a switch takes the steps that are left.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated, Any, Final

import psycopg
import typer

from seapost.cli.databases import dsn_of
from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load_projection
from seapost.cli.options import ActorOption, ConfigOption, ConsumerOption, DsnOption, JsonOption, actor_name
from seapost.cli.output import Fields, Output, Table
from seapost.cli.settings import DatabaseSettings, load_settings
from seapost.database.pool import configure_session, open_sync_pool, part_dsn
from seapost.model.errors import UnknownDeliverySet
from seapost.projections import completeness
from seapost.projections.cutover import Cutover, CutoverSettings
from seapost.projections.feed import Feed
from seapost.projections.feeding import BATCH_DEFAULT, OnPoison
from seapost.projections.projection import Projection
from seapost.projections.rebuild import Progress, Rebuild, RebuildSettings
from seapost.store import projection_cutover, projection_feed, projections

app = typer.Typer(
    help="Versions of a projection side by side: build, follow, prove, switch, go back, retire.", no_args_is_help=True
)

ProjectionArgument = Annotated[
    str, typer.Argument(metavar="APP", help="module:attribute of a Projection, for instance shop.views:orders_v2.")
]
DeliverySetOption = Annotated[
    str,
    typer.Option(
        "--delivery-set", metavar="V", help="Registered version of the delivery set whose events freeze this version."
    ),
]
PART: Final = "projection"
_VERSIONS: Final = (
    "projection_name",
    "projection_version",
    "state",
    "is_current",
    "is_fed",
    "applied_count",
    "open_gaps",
    "stalled_event_id",
    "stalled_reason",
)


@app.command("list")
def list_(
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """List the versions of every projection of this database."""
    with _connected(_database(consumer, dsn, config)) as connection:
        rows = projections.versions(connection)
    headings = ("projection", "version", "state", "read", "fed", "applied", "gaps", "stalled at", "because")
    document = [dict(zip(_VERSIONS, row, strict=True)) for row in rows]
    Output(as_json=as_json).emit(document, Table(headings, rows))
    return ExitCode.DONE


@app.command()
def register(
    projection: ProjectionArgument,
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Make a version known, with its tables; the first one of a projection is read at once."""
    found = load_projection(projection)
    with _connected(_database(consumer, dsn, config)) as connection:
        state = found.register(connection, actor=actor_name(actor))
    _tell(Output(as_json=as_json), found, state=state)
    return ExitCode.DONE


@app.command()
def rebuild(
    projection: ProjectionArgument,
    workers: Annotated[int, typer.Option("--workers", help="Sessions that share the aggregates.")] = 2,
    batch: Annotated[int, typer.Option("--batch", help="Most events of one transaction.")] = BATCH_DEFAULT,
    rate: Annotated[float | None, typer.Option("--rate", help="Most events a second; by default no limit.")] = None,
    on_poison: Annotated[
        OnPoison, typer.Option("--on-poison", help="What to do with an event that the fold refuses.")
    ] = OnPoison.STOP,
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Fold everything that the version lacks; it goes on where an earlier rebuild ended."""
    found = load_projection(projection)
    database = _database(consumer, dsn, config)
    settings = RebuildSettings(workers=workers, batch=batch, rate=rate, on_poison=on_poison, role=database.role)
    output = Output(as_json=as_json)
    with _stopping() as stop, output.progress(f"building {found.target.name} {found.target.version}", 0) as advance:
        told = _Told(advance)
        run = Rebuild(found, dsn_of(database), actor=actor_name(actor), settings=settings, stop=stop)
        report = run.run(told)
        interrupted = stop.is_set()
    _tell(output, found, **asdict(report))
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.DONE if report.is_complete else ExitCode.PARTIAL


@app.command()
def follow(
    projection: ProjectionArgument,
    on_poison: Annotated[
        OnPoison, typer.Option("--on-poison", help="What to do with an event that the fold refuses.")
    ] = OnPoison.STOP,
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Feed a version what its deliveries do not bring, until interrupted: a shadow, or one that can be gone back to."""
    found = load_projection(projection)
    database = _database(consumer, dsn, config)
    with _stopping() as stop, open_sync_pool(dsn_of(database), part=PART, size_max=1, role=database.role) as pool:
        with pool.connection() as connection:
            token = projection_feed.claim(connection, target=found.target, actor=actor_name(actor))
        Feed(found, pool, token, on_poison=on_poison).run(stop)
    _tell(Output(as_json=as_json), found, state="no longer followed")
    return ExitCode.DONE


@app.command()
def prove(
    projection: ProjectionArgument,
    rehash: Annotated[bool, typer.Option("--rehash", help="Read every envelope and receipt again.")] = False,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Prove how complete a version is, over one snapshot, and keep the proof. Needs the role seapost_verifier."""
    found = load_projection(projection)
    with _connected(_database(consumer, dsn, config)) as connection:
        proof = completeness.prove(connection, found, rehash=rehash)
    shown = {name: value for name, value in proof.document.items() if isinstance(value, int | str)}
    Output(as_json=as_json).emit(proof.document, Fields(shown))
    return ExitCode.DONE if proof.is_complete else ExitCode.CHECK_FAILED


@app.command()
def status(
    projection: ProjectionArgument,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Say whether the last proof of a version still holds; a failed check unless it does and says complete."""
    found = load_projection(projection)
    with _connected(_database(consumer, dsn, config)) as connection:
        answer = completeness.compare(connection, found)
    Output(as_json=as_json).emit(asdict(answer), Fields(asdict(answer)))
    is_good = (answer.snapshot_currency, answer.completeness) == ("verified_current", completeness.COMPLETE)
    return ExitCode.DONE if is_good else ExitCode.CHECK_FAILED


@app.command()
def cutover(
    projection: ProjectionArgument,
    delivery_set: DeliverySetOption,
    rollback_days: Annotated[float, typer.Option("--rollback-days", help="How long one can go back.")] = 7.0,
    producers: Annotated[
        list[str] | None,
        typer.Option("--producer", metavar="NAME", help="Another database that activates the set afterwards."),
    ] = None,
    rest_max: Annotated[
        int, typer.Option("--rest-max", help="Most events the version may lack at the freeze.")
    ] = 10_000,
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Switch readers and new events to a version, in one moment; takes the steps that are left when run again."""
    found = load_projection(projection)
    settings = CutoverSettings(
        rest_max=rest_max, rollback=timedelta(days=rollback_days), producers=tuple(producers or ())
    )
    output = Output(as_json=as_json)
    _cutover(found, delivery_set, settings, actor, _database(consumer, dsn, config)).run(output.note)
    _tell(output, found, state="active")
    return ExitCode.DONE


@app.command()
def rollback(
    projection: ProjectionArgument,
    delivery_set: DeliverySetOption,
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Go back to a version that drains: a cutover to it, with a new delivery set that names it again."""
    return cutover(projection, delivery_set, actor=actor, consumer=consumer, dsn=dsn, config=config, as_json=as_json)


@app.command()
def abandon(
    projection: ProjectionArgument,
    delivery_set: DeliverySetOption,
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Give up a cutover that has not switched: everything is as before."""
    found = load_projection(projection)
    _cutover(found, delivery_set, CutoverSettings(), actor, _database(consumer, dsn, config)).abandon()
    _tell(Output(as_json=as_json), found, state="not switched")
    return ExitCode.DONE


@app.command()
def activated(
    projection: ProjectionArgument,
    producer: Annotated[str, typer.Option("--producer", metavar="NAME", help="Whose database has activated the set.")],
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Note that another producer's database has activated the delivery set; the last one ends the cutover."""
    found = load_projection(projection)
    with _connected(_database(consumer, dsn, config)) as connection, connection.transaction():
        name = found.target.name
        running = projection_cutover.under_way(connection, name=name)
        if running is not None:
            projection_cutover.activated(connection, name=name, token=running.token, producer=producer)
            if set(running.producers) <= {*running.activated, producer}:
                projection_cutover.finish(connection, name=name, token=running.token, actor=actor_name(actor))
    _tell(Output(as_json=as_json), found, activated=producer)
    return ExitCode.DONE if running is not None else ExitCode.NOT_FOUND


@app.command()
def retire(
    projection: ProjectionArgument,
    confirmed_by: Annotated[
        str, typer.Option("--confirmed-by", metavar="WHO", help="Whose word it is that no producer needs it any more.")
    ],
    actor: ActorOption = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """End a version that nothing refers to any more; nobody can go back to it afterwards."""
    found = load_projection(projection)
    with _connected(_database(consumer, dsn, config)) as connection:
        projection_cutover.retire(connection, target=found.target, confirmed=confirmed_by, actor=actor_name(actor))
    _tell(Output(as_json=as_json), found, state="retired")
    return ExitCode.DONE


class _Told:
    """Moves a bar on by what a rebuild tells."""

    def __init__(self, advance: Any) -> None:  # noqa: ANN401 - a bar of the output
        self._advance = advance
        self._done = 0

    def __call__(self, progress: Progress) -> None:
        """Show it."""
        self._advance.total(progress.expected)
        self._advance(progress.done - self._done)
        self._done = progress.done


def _cutover(
    projection: Projection,
    delivery_set: str,
    settings: CutoverSettings,
    actor: str | None,
    database: DatabaseSettings,
) -> Cutover:
    with _connected(database) as connection:
        digest = projection_cutover.definition_digest(connection, delivery_set_version=delivery_set)
    if digest is None:
        raise UnknownDeliverySet(f"The delivery set version {delivery_set} is not registered here.")
    return Cutover(
        projection,
        dsn_of(database),
        delivery_set_version=delivery_set,
        definition_digest=digest,
        actor=actor_name(actor),
        settings=settings,
    )


def _tell(output: Output, projection: Projection, **values: object) -> None:
    document = {"projection": projection.target.name, "version": projection.target.version, **values}
    output.emit(document, Fields(document))


def _database(consumer: bool, dsn: str | None, config: Path | None) -> DatabaseSettings:
    section = "consumer" if consumer else "database"
    settings = load_settings(file=config, flags={(section, "dsn"): dsn})
    return settings.consumer if consumer else settings.database


@contextmanager
def _connected(database: DatabaseSettings) -> Generator[psycopg.Connection[Any]]:
    """One session for a command that takes its time."""
    with psycopg.connect(part_dsn(dsn_of(database), PART), autocommit=True) as connection:
        configure_session(connection, database.timeouts, role=database.role)
        yield connection


@contextmanager
def _stopping() -> Generator[Event]:
    """An event that SIGINT and SIGTERM set: what is under way ends with its transaction."""
    stop = Event()
    former: dict[int, Callable[..., object] | int | None] = {}

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        former[number] = signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            _ = signal.signal(number, handler)  # pyright: ignore[reportArgumentType]
