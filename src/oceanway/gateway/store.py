"""Calls of the functions of the gateway: one function, one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.errors import translating
from oceanway.contracts.identity import Quint
from seapost.store.arrays import ByteaArray, TextArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from psycopg import Connection

    Chain = tuple[str, str, str, str]
    SourceRow = tuple[bytes | None, bytes | None, bytes | None, UUID | None, str | None, bytes | None, bytes | None]
    AvailabilityRow = tuple[bytes | None, bytes | None, bytes | None]
    RouteRow = tuple[bytes | None, bytes | None, bytes | None]

NOTHING: Final = b""
"""Stands for evidence or a conflict fact that a statement does not have."""

_BIND: Final = "select gateway.route_bind_v1(%b, %b)"
_PRE_BINDING: Final = "select gateway.availability_record_pre_binding_v1(%b, %b, %b, %b, %b, %b)"
_CURRENT: Final = "select * from gateway.availability_current_v1(%b, %b, %b, %b)"
_ADVANCE: Final = "select gateway.availability_advance_v1(%b, %b, %b, %b)"
_DECLARE_EVIDENCE: Final = "select gateway.evidence_declare_conflict_v1(%b)"
_REPAIR_EVIDENCE: Final = "select gateway.evidence_repair_v1(%b, %b, %b, %b)"
_DECLARE_BINDING: Final = "select gateway.binding_declare_conflict_v1(%b)"
_REPAIR_BINDING: Final = "select gateway.binding_repair_v1(%b, %b)"
_SOURCE: Final = "select * from gateway.source_read_v1(%b)"
_VALIDATION_AVAILABILITY: Final = "select * from gateway.validation_availability_v1(%b, %b, %b, %b)"
_VALIDATION_ROUTE: Final = "select * from gateway.validation_route_v1(%b, %b)"
_ISSUE: Final = "select * from gateway.validation_issue_v1(%b)"


def bind_routes(connection: Connection[Any], *, snapshots: Iterable[bytes], bindings: Iterable[bytes]) -> int:
    """Bind attempts to routes; how many bindings are new (REF-23)."""
    with translating():
        [(new,)] = call(connection, _BIND, (ByteaArray(snapshots), ByteaArray(bindings)))
    return int(new)


def record_pre_binding(
    connection: Connection[Any], *, snapshot: str, deployment: str, route: str, kind: str, dimension: str, state: str
) -> None:
    """Keep what a deployment can report before any attempt is bound (APP-17)."""
    with translating():
        call(connection, _PRE_BINDING, (snapshot, deployment, route, kind, dimension, state))


def current(connection: Connection[Any], *, chains: Sequence[Chain]) -> list[Quint | None]:
    """The current statement of chains of attempt, deployment, kind and dimension, in order."""
    with translating():
        rows = call(connection, _CURRENT, _columns(chains))
    return [None if row[0] is None else Quint(*row) for row in rows]


def advance(
    connection: Connection[Any],
    *,
    snapshots: Iterable[bytes],
    evidence: Iterable[bytes],
    conflicts: Iterable[bytes],
    events: Iterable[bytes],
) -> int:
    """Advance chains, all or none; `NOTHING` stands for no evidence or fact; how many statements are new (TX-15)."""
    arguments = (ByteaArray(snapshots), ByteaArray(evidence), ByteaArray(conflicts), ByteaArray(events))
    with translating():
        [(new,)] = call(connection, _ADVANCE, arguments)
    return int(new)


def declare_evidence_conflict(connection: Connection[Any], *, document: bytes) -> None:
    """Record that the gateway's claims about a chain exclude each other."""
    with translating():
        call(connection, _DECLARE_EVIDENCE, (document,))


def repair_evidence(connection: Connection[Any], *, chain: Chain) -> bool:
    """End the open conflict of a chain; whether there was one."""
    with translating():
        [(repaired,)] = call(connection, _REPAIR_EVIDENCE, chain)
    return bool(repaired)


def declare_binding_conflict(connection: Connection[Any], *, document: bytes) -> None:
    """Record that the gateway's claims about the route of an attempt exclude each other."""
    with translating():
        call(connection, _DECLARE_BINDING, (document,))


def repair_binding(connection: Connection[Any], *, attempt: str, deployment: str) -> bool:
    """End the open conflict of a binding; whether there was one."""
    with translating():
        [(repaired,)] = call(connection, _REPAIR_BINDING, (attempt, deployment))
    return bool(repaired)


def sources(connection: Connection[Any], *, refs: Iterable[str]) -> list[SourceRow]:
    """Statement, evidence, route snapshot, event, its digest, and both open conflicts, in order."""
    with translating():
        rows = call(connection, _SOURCE, (TextArray(refs),))
    return [(*row,) for row in rows]  # pyright: ignore[reportReturnType] - seven columns


def current_availability(connection: Connection[Any], *, chains: Sequence[Chain]) -> list[AvailabilityRow]:
    """The current statement of chains and both open conflicts, in order."""
    with translating():
        rows = call(connection, _VALIDATION_AVAILABILITY, _columns(chains))
    return [(snapshot, evidence, binding) for snapshot, evidence, binding in rows]


def current_routes(connection: Connection[Any], *, bindings: Sequence[tuple[str, str]]) -> list[RouteRow]:
    """Binding, route snapshot and open conflict for pairs of attempt and deployment, in order."""
    attempts, deployments = TextArray(one for one, _ in bindings), TextArray(one for _, one in bindings)
    with translating():
        rows = call(connection, _VALIDATION_ROUTE, (attempts, deployments))
    return [(binding, snapshot, conflict) for binding, snapshot, conflict in rows]


def issue(connection: Connection[Any], *, receipts: Iterable[bytes]) -> list[bytes]:
    """Keep validation receipts; the first receipt of each operation, in order (REF-30)."""
    with translating():
        return [document for (document,) in call(connection, _ISSUE, (ByteaArray(receipts),))]


def _columns(chains: Sequence[Chain]) -> tuple[TextArray, TextArray, TextArray, TextArray]:
    return (
        TextArray(chain[0] for chain in chains),
        TextArray(chain[1] for chain in chains),
        TextArray(chain[2] for chain in chains),
        TextArray(chain[3] for chain in chains),
    )
