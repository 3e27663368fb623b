"""From declared routes to the active delivery set: plan shows the difference, apply registers and activates it.

The database holds the truth (APP-01): a definition is registered under a new version and never changed, activation
waits for every append in flight, and events already stored keep the definition they froze (SET-31, SET-40).
Declared fair lanes are settings beside the definition: applied with it, changed without a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seapost.contracts.delivery_set import DeliverySetDefinition, DeliverySetMember
from seapost.model.errors import ContractError
from seapost.store import delivery_set as store
from seapost.store import destination as settings_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import psycopg

    from seapost.outbox.application import Application


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """What applying an application's routes to one database would change.

    Attributes:
        definition: the definition of the declared routes, under the version it would have or already has.
        active_version: the version that new events freeze now; None when there is none.
        added, removed: lines that only the new, only the active definition holds; a changed line is in both.
        events_added, events_removed: pairs of event type and schema version, likewise.
        fair_lanes: the number before and after, for each destination whose declared fair lanes differ.
    """

    definition: DeliverySetDefinition
    active_version: str | None
    added: tuple[DeliverySetMember, ...]
    removed: tuple[DeliverySetMember, ...]
    events_added: tuple[tuple[str, str], ...]
    events_removed: tuple[tuple[str, str], ...]
    fair_lanes: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def changes(self) -> bool:
        """Whether there is anything to apply."""
        differs = self.added or self.removed or self.events_added or self.events_removed or self.fair_lanes
        return bool(differs) or self.active_version != self.definition.delivery_set_version


async def plan(
    connection: psycopg.AsyncConnection[Any], application: Application, *, version: str | None = None
) -> RoutePlan:
    """Compare the declared routes with the active delivery set; changes nothing.

    Args:
        connection: the database to compare with.
        application: the declared routes.
        version: version of the definition. Absent, it is the active one when nothing differs, a registered but unused
            one with the same content, or the next whole number of this database. A definition has one version
            everywhere (AMB-03), so a database that does not know the earlier ones needs to be told.
    """
    registered = await store.versions(connection)
    active = next((version for version in registered if version.status == "active"), None)
    usable = [version for version in registered if version.status != "retired"]
    if version is None:
        definition = _same_content(application, usable) or application.definition(_next_version(registered))
    else:
        definition = application.definition(version)
    current = _read(active) if active is not None else None
    old_members = set(current.members) if current else set[DeliverySetMember]()
    new_members = set(definition.members)
    old_events = {event.key() for event in current.applicable_events} if current else set[tuple[str, str]]()
    new_events = {event.key() for event in definition.applicable_events}
    return RoutePlan(
        definition=definition,
        active_version=active.delivery_set_version if active else None,
        added=tuple(sorted(new_members - old_members, key=DeliverySetMember.key)),
        removed=tuple(sorted(old_members - new_members, key=DeliverySetMember.key)),
        events_added=tuple(sorted(new_events - old_events)),
        events_removed=tuple(sorted(old_events - new_events)),
        fair_lanes=await _fair_lanes_changes(connection, application),
    )


async def register(
    connection: psycopg.AsyncConnection[Any], definition: DeliverySetDefinition, *, source_release: str, actor: str
) -> None:
    """Register a definition without activating it: what every consumer's database needs (REF-11, AMB-03).

    Raises:
        DeliverySetConflict: the version is registered with another definition.
    """
    _ = await store.register(
        connection, candidate=definition.candidate_bytes(), source_release=source_release, actor=actor
    )


async def apply(
    connection: psycopg.AsyncConnection[Any],
    definition: DeliverySetDefinition,
    *,
    source_release: str,
    actor: str,
    fair_lanes: Mapping[str, int] | None = None,
) -> None:
    """Register a definition, set the declared fair lanes, and make it the one that new events freeze.

    Raises:
        DeliverySetConflict: the version is registered with another definition.
        IllegalTransition: the version is retired.
    """
    async with connection.transaction():
        await register(connection, definition, source_release=source_release, actor=actor)
        await store.activate(
            connection,
            delivery_set_version=definition.delivery_set_version,
            digest=bytes.fromhex(definition.delivery_set_definition_digest),
            actor=actor,
        )
        for destination, lanes in sorted((fair_lanes or {}).items()):
            await settings_store.set_fair_lanes(connection, destination=destination, fair_lanes=lanes, actor=actor)


async def _fair_lanes_changes(
    connection: psycopg.AsyncConnection[Any], application: Application
) -> dict[str, tuple[int, int]]:
    declared = application.fair_lanes
    if not declared:
        return {}
    current = await settings_store.fair_lanes(connection)
    return {
        destination: (current.get(destination, 1), lanes)
        for destination, lanes in sorted(declared.items())
        if current.get(destination, 1) != lanes
    }


def _read(version: store.RegisteredVersion) -> DeliverySetDefinition:
    return DeliverySetDefinition.from_candidate(version.candidate)


def _same_content(
    application: Application, registered: Sequence[store.RegisteredVersion]
) -> DeliverySetDefinition | None:
    """The newest registered definition with exactly the declared content, the active one first."""
    for version in sorted(registered, key=lambda version: version.status == "active", reverse=True):
        try:
            candidate = application.definition(version.delivery_set_version)
        except ContractError:
            continue
        if candidate.delivery_set_definition_digest == version.definition_digest:
            return candidate
    return None


def _next_version(registered: Sequence[store.RegisteredVersion]) -> str:
    numbers = [int(v.delivery_set_version) for v in registered if v.delivery_set_version.isdecimal()]
    return str(max(numbers, default=0) + 1)
