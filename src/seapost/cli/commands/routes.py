"""`seapost routes`: what an application declares, what the database freezes, and the step between them (SET-*)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from seapost.cli.databases import acting, looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load_application
from seapost.cli.options import (
    ActorOption,
    AppArgument,
    ConfigOption,
    ConsumerOption,
    DsnOption,
    JsonOption,
    actor_name,
)
from seapost.cli.output import Fields, Output, Table
from seapost.cli.settings import DatabaseSettings, Settings, load_settings
from seapost.contracts.delivery_set import DeliverySetDefinition, DeliverySetMember
from seapost.model.errors import NoActiveDeliverySet, UnknownDeliverySet
from seapost.outbox import routes as registry
from seapost.outbox.application import Application
from seapost.outbox.routes import RoutePlan
from seapost.store import delivery_set as store
from seapost.telemetry.metrics import release

app = typer.Typer(
    help="Compare declared routes with the active delivery set, and activate a new version.", no_args_is_help=True
)


VersionOption = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar="V",
        help="Version of the delivery set, the same in every database; by default the next number of this one.",
    ),
]


@app.command()
def plan(
    application: AppArgument,
    version: VersionOption = None,
    consumer: ConsumerOption = False,
    check: Annotated[
        bool, typer.Option("--check", help="End with the code of a failed check when there is something to apply.")
    ] = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show what `apply` would change; changes nothing."""
    routed = load_application(application)
    section, settings = _settings(consumer, dsn, config)

    async def look() -> RoutePlan:
        async with looking(_database(settings, section), section) as connection:
            return await registry.plan(connection, routed, version=version)

    found = asyncio.run(look())
    Output(as_json=as_json).emit(_plan_document(found), *_plan_blocks(found))
    return ExitCode.CHECK_FAILED if check and found.changes else ExitCode.DONE


@app.command()
def apply(
    application: AppArgument,
    register_only: Annotated[
        bool, typer.Option("--register-only", help="Register without activating, for a release that comes later.")
    ] = False,
    consumer: Annotated[
        bool,
        typer.Option(
            "--consumer",
            help="Register in the consumer's own database, section \\[consumer], never activating: a consumer must "
            "know a delivery set before events carry it. \\[database] decides the version, unless --version does.",
        ),
    ] = False,
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="Version to register under; by default the next one.")
    ] = None,
    source_release: Annotated[
        str | None,
        typer.Option("--source-release", metavar="TEXT", help="Release the routes come from, for the registry."),
    ] = None,
    actor: ActorOption = None,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Register the declared routes as a delivery set and make it the one that new events freeze."""
    routed = load_application(application)
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})
    output = Output(as_json=as_json)
    entry = {"source_release": source_release or f"{routed.name}, seapost {release()}", "actor": actor_name(actor)}
    activating = not (register_only or consumer)

    async def act() -> tuple[DeliverySetDefinition, bool, list[str]]:
        definition = None if version is None else routed.definition(version)
        if consumer:
            if definition is None:
                async with looking(settings.database) as connection:
                    definition = (await registry.plan(connection, routed)).definition
            async with acting(settings.consumer, "consumer") as connection:
                await registry.register(connection, definition, **entry)
            return definition, False, []
        async with acting(settings.database) as connection:
            found = await registry.plan(connection, routed, version=version)
            definition = definition or found.definition
            is_new = found.active_version != definition.delivery_set_version
            if not activating or not (is_new or found.fair_lanes):
                await registry.register(connection, definition, **entry)
                return definition, False, []
            await registry.apply(connection, definition, **entry, fair_lanes=routed.fair_lanes)
            return definition, is_new, _fair_lanes(found)

    with output.progress("waiting for appends in flight" if activating else "registering"):
        definition, activated, lanes = asyncio.run(act())
    name = definition.delivery_set_version
    output.emit(
        {
            "deliverySetVersion": name,
            "deliverySetDefinitionDigest": definition.delivery_set_definition_digest,
            "registered": True,
            "activated": activated,
        },
        _said(name, activated=activated, activating=activating),
        *lanes,
    )
    return ExitCode.DONE


def _said(name: str, *, activated: bool, activating: bool) -> str:
    """What `apply` did about the delivery set."""
    if activated:
        return f"activated delivery set {name}"
    return f"delivery set {name} is active already" if activating else f"registered delivery set {name}, not activated"


@app.command()
def show(
    application: Annotated[
        str | None,
        typer.Argument(metavar="[APP]", help="module:attribute of an Application; left out, what the database holds."),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="A registered version; by default the active one.")
    ] = None,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show the routes an application declares or, without APP, a delivery set of the database."""
    output = Output(as_json=as_json)
    if application is not None:
        return _show_declared(output, load_application(application))
    section, settings = _settings(consumer, dsn, config)

    async def look() -> list[store.RegisteredVersion]:
        async with looking(_database(settings, section), section) as connection:
            return await store.versions(connection)

    versions = asyncio.run(look())
    chosen = _choose(versions, version)
    definition = DeliverySetDefinition.from_candidate(chosen.candidate)
    known = [
        {
            "deliverySetVersion": one.delivery_set_version,
            "status": one.status,
            "registeredAt": one.registered_at,
            "activatedAt": one.activated_at,
            "sourceRelease": one.source_release,
            "deliverySetDefinitionDigest": one.definition_digest,
        }
        for one in versions
    ]
    output.emit(
        {"versions": known, "definition": definition.to_json()},
        Table(
            ("version", "status", "registered", "activated", "source release"),
            [
                (one.delivery_set_version, one.status, one.registered_at, one.activated_at, one.source_release)
                for one in versions
            ],
        ),
        "",
        _members(definition.members, f"delivery set {chosen.delivery_set_version}"),
    )
    return ExitCode.DONE


def _show_declared(output: Output, application: Application) -> ExitCode:
    members = list(application)
    output.emit(
        {"application": application.name, "members": [member.to_json() for member in members]},
        _members(members, f"declared by {application.name}"),
    )
    return ExitCode.DONE


def _choose(versions: list[store.RegisteredVersion], wanted: str | None) -> store.RegisteredVersion:
    for one in versions:
        if (one.status == "active") if wanted is None else (one.delivery_set_version == wanted):
            return one
    if wanted is None:
        raise NoActiveDeliverySet
    raise UnknownDeliverySet(f"There is no delivery set {wanted} in this database.")


def _settings(consumer: bool, dsn: str | None, config: Path | None) -> tuple[str, Settings]:
    section = "consumer" if consumer else "database"
    return section, load_settings(file=config, flags={(section, "dsn"): dsn})


def _database(settings: Settings, section: str) -> DatabaseSettings:
    return settings.consumer if section == "consumer" else settings.database


def _plan_document(found: RoutePlan) -> dict[str, object]:
    return {
        "changes": found.changes,
        "activeVersion": found.active_version,
        "deliverySetVersion": found.definition.delivery_set_version,
        "deliverySetDefinitionDigest": found.definition.delivery_set_definition_digest,
        "added": [member.to_json() for member in found.added],
        "removed": [member.to_json() for member in found.removed],
        "eventsAdded": [list(pair) for pair in found.events_added],
        "eventsRemoved": [list(pair) for pair in found.events_removed],
        "fairLanes": {name: {"from": before, "to": after} for name, (before, after) in found.fair_lanes.items()},
    }


def _plan_blocks(found: RoutePlan) -> list[Fields | str | Table]:
    if not found.changes:
        return [f"delivery set {found.active_version} holds exactly the declared routes"]
    rows = [("+", *_row(member)) for member in found.added] + [("-", *_row(member)) for member in found.removed]
    version, active = found.definition.delivery_set_version, found.active_version
    blocks: list[Fields | str | Table] = (
        [] if version == active else [f"delivery set {version} would replace {active or 'none'}"]
    )
    if rows:
        blocks.append(Table(("", *_COLUMNS), rows))
    blocks += [f"+ event {kind}, schema version {version}" for kind, version in found.events_added]
    blocks += [f"- event {kind}, schema version {version}" for kind, version in found.events_removed]
    return [*blocks, *_fair_lanes(found)]


def _fair_lanes(found: RoutePlan) -> list[str]:
    """A line for each destination whose declared fair lanes differ."""
    return [f"fair lanes of {name}: {after} in place of {before}" for name, (before, after) in found.fair_lanes.items()]


_COLUMNS = ("event type", "schema", "destination", "consumer", "receipt", "mandatory")


def _row(member: DeliverySetMember) -> tuple[object, ...]:
    return (
        member.event_type,
        member.event_schema_version,
        member.destination,
        member.consumer_name,
        f"{member.expected_receipt_type}@{member.expected_receipt_schema_version}",
        member.mandatory,
    )


def _members(members: Iterable[DeliverySetMember], title: str) -> Table:
    return Table(_COLUMNS, [_row(member) for member in members], title)
