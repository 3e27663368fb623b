"""What stands where: five databases, the owners in each, the processes and what each may do.

The wire name of a workload is the name of its process: `dispatch.core`, `serve.metering`, `work.finalization`.
Every workload that calls another one has a signing key of its own, and every process a login role in its database.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Database(StrEnum):
    """A database of one fact boundary (GEN-07)."""

    CORE = "core"
    EXECUTION = "execution"
    GATEWAY = "gateway"
    METERING = "metering"
    BILLING = "billing"


class Kind(StrEnum):
    """What a process does all day; `drive` stands for the applications that begin a transaction of an owner."""

    SERVE = "serve"
    DISPATCH = "dispatch"
    WORK = "work"
    DRIVE = "drive"
    AUDIT = "audit"


OWNERS: Final[Mapping[Database, tuple[str, ...]]] = MappingProxyType(
    {
        Database.CORE: ("core", "operations"),
        Database.EXECUTION: ("execution",),
        Database.GATEWAY: ("gateway",),
        Database.METERING: ("metering",),
        Database.BILLING: ("billing",),
    }
)
"""The owners whose schemas lie in a database, in the order in which they are made."""

DATABASE_OF: Final[Mapping[str, Database]] = MappingProxyType(
    {owner: database for database, owners in OWNERS.items() for owner in owners}
)

SERVED: Final = ("execution", "gateway", "metering", "billing", "operations")
"""Owners with reads, consumers or both: each listens on one port."""

WORKS: Final[Mapping[str, str]] = MappingProxyType(
    {"metering": "metering", "finalization": "billing", "catch-up": "billing"}
)
"""The work loops, each with the owner of its works."""

DESTINATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "metering_input_processor": "metering",
        "billing_finalization_coordinator": "billing",
        "billing_settlement_catch_up": "billing",
        "core_operations": "operations",
    }
)
"""Each destination of the release, and the owner whose process receives for it."""

DISPATCHED: Final[Mapping[Database, tuple[str, ...]]] = MappingProxyType(
    {
        Database.CORE: ("core_operations",),
        Database.EXECUTION: ("billing_finalization_coordinator", "metering_input_processor"),
        Database.GATEWAY: ("metering_input_processor",),
        Database.METERING: ("billing_settlement_catch_up",),
        Database.BILLING: ("billing_finalization_coordinator", "core_operations"),
    }
)
"""The destinations that the events of a database may have."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the installation.

    Attributes:
        subject: the owner it serves or works for, the database it dispatches from, or the loop it runs.
        roles: what its login role is a member of, in `database`.
    """

    kind: Kind
    subject: str
    database: Database
    roles: tuple[str, ...]

    @property
    def workload(self) -> str:
        """Who the process is to those it calls, and the name of its key."""
        return f"{self.kind}.{self.subject}"

    @property
    def login(self) -> str:
        """Its login role in its database."""
        return f"oceanway_{self.kind}_{self.subject}".replace("-", "_")


def _serving(owner: str) -> Process:
    roles = (f"oceanway_{owner}_reader", f"oceanway_{owner}_consumer", "seapost_consumer")
    return Process(Kind.SERVE, owner, DATABASE_OF[owner], roles)


def _working(loop: str, owner: str) -> Process:
    return Process(Kind.WORK, loop, DATABASE_OF[owner], (f"oceanway_{owner}_service",))


_COMMANDED: Final[Mapping[Database, tuple[str, ...]]] = MappingProxyType(
    {Database.BILLING: ("oceanway_billing_consumer",)}
)
"""Billing receives commands with the rights of its consumers."""

PROCESSES: Final[tuple[Process, ...]] = (
    *(_serving(owner) for owner in SERVED),
    *(Process(Kind.DISPATCH, one.value, one, ("seapost_dispatcher",)) for one in Database),
    *(_working(loop, owner) for loop, owner in WORKS.items()),
    *(
        Process(
            Kind.DRIVE, one.value, one, (*(f"oceanway_{owner}_service" for owner in owners), *_COMMANDED.get(one, ()))
        )
        for one, owners in OWNERS.items()
    ),
    *(Process(Kind.AUDIT, one.value, one, ("oceanway_auditor", "seapost_auditor")) for one in Database),
)


def process_of(kind: Kind, subject: str) -> Process:
    """The process of this kind and subject; raise `KeyError` when the installation has none."""
    for process in PROCESSES:
        if process.kind is kind and process.subject == subject:
            return process
    raise KeyError(f"{kind} {subject}")
