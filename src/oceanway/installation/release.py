"""The release: one delivery set definition that all five databases register and activate (AMB-03).

A definition has one version and one digest everywhere. A producer that would freeze an incomplete definition into its
events does not start (SET-37).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection, Connection

from oceanway.installation import store
from oceanway.installation.errors import ReleaseIncomplete
from seapost.contracts.delivery_set import DeliverySetDefinition, RequiredProjectionTarget
from seapost.database.pool import part_dsn
from seapost.outbox import routes
from seapost.store import projections

if TYPE_CHECKING:
    from seapost.contracts.events import Event
    from seapost.model.delivery_set import ProjectionTarget
    from seapost.outbox.application import Application

VERSION: Final = "1"
ACTOR: Final = "oceanway.installation"


def activate_release(dsn: str, application: Application, *, version: str = VERSION, actor: str = ACTOR) -> bool:
    """Register the release in one database and make it the one that new events freeze; whether anything changed.

    Args:
        dsn: as a member of `seapost_operator`.

    Raises:
        DeliverySetConflict: the version is registered with another definition.
    """
    activating = _activate(dsn, application, version, actor)
    with ThreadPoolExecutor(1) as thread:  # not in the caller's event loop, if there is one
        return thread.submit(asyncio.run, activating).result()


async def _activate(dsn: str, application: Application, version: str, actor: str) -> bool:
    async with await AsyncConnection.connect(part_dsn(dsn, "release", program="oceanway")) as connection:
        wanted = await routes.plan(connection, application, version=version)
        if not wanted.changes:
            return False
        await routes.apply(
            connection,
            wanted.definition,
            source_release=application.name,
            actor=actor,
            fair_lanes=application.fair_lanes,
        )
        return True


def register_projections(
    dsn: str, application: Application, targets: Iterable[ProjectionTarget], *, actor: str = ACTOR
) -> None:
    """Make the projections that a database applies known to it; again changes nothing (REF-05).

    A version folds what the release sends to it. Its rows stand in tables that versions share, so none is its own.
    """
    with psycopg.connect(part_dsn(dsn, "release", program="oceanway")) as connection:
        for target in targets:
            wanted = RequiredProjectionTarget(projection_name=target.name, projection_version=target.version)
            members = [member for member in application if member.projection_target == wanted]
            if not members:
                raise ReleaseIncomplete(f"The release sends nothing to {target.name} version {target.version}.")
            _ = projections.register(
                connection,
                target=target,
                pairs=sorted({(member.event_type, member.event_schema_version) for member in members}),
                tables=(),
                receipt_key=f"{members[0].consumer_name}@{target.name}@{target.version}",
                actor=actor,
            )


def check_release(connection: Connection[Any], application: Application, events: Iterable[type[Event]]) -> None:
    """Prove that the active definition holds these events with exactly their declared members (SET-37).

    Args:
        connection: the producer's own database, as a role that may read the registry.
        events: what the producer is about to write.

    Raises:
        ReleaseIncomplete: no definition is active, or the first event that it lacks or routes otherwise.
    """
    candidate = store.active_candidate(connection)
    if candidate is None:
        raise ReleaseIncomplete("This database has no active definition; activate the release first.")
    active = DeliverySetDefinition.from_candidate(candidate)
    pairs = {event.key() for event in active.applicable_events}
    for event in events:
        pair = (event.event_type, event.event_schema_version)
        if pair not in pairs:
            raise ReleaseIncomplete(f"The active definition {active.delivery_set_version} lacks {pair[0]} {pair[1]}.")
        declared = [one for one in application if (one.event_type, one.event_schema_version) == pair]
        frozen = [one for one in active.members if (one.event_type, one.event_schema_version) == pair]
        if declared != frozen:
            raise ReleaseIncomplete(f"The active definition sends {pair[0]} {pair[1]} elsewhere than declared.")
