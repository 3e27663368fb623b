"""What the server is made of, opened together and closed together."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from orbit.journal.wake import WakeHub
from orbit.server.readiness import Readiness
from orbit.store.calls import call
from orbit.store.database import Database
from orbit.store.migrations import schema_faults
from orbit.subscriptions.deliveries import Deliveries
from orbit.subscriptions.service import Subscriptions
from orbit.tasks.fence import CommitMode, session_dsn
from orbit.tasks.service import Tasks

POOL_SIZE_DEFAULT: Final = 8
READINESS_PART: Final = "server-readiness"


@dataclass(slots=True)
class Services:
    """The rooms of one process.

    Attributes:
        stopping: the order to stop has come; new requests and connections are refused.
    """

    database: Database
    tasks: Tasks
    subscriptions: Subscriptions
    deliveries: Deliveries
    wakes: WakeHub
    readiness: Readiness
    stopping: bool = False


@asynccontextmanager
async def open_services(
    dsn: str,
    *,
    pool_size: int = POOL_SIZE_DEFAULT,
    role: str | None = None,
    commit_mode: CommitMode = CommitMode.PLAIN,
) -> AsyncGenerator[Services]:
    """Open the rooms over one database; it need not be reachable yet, nor migrated (OPS-05).

    Args:
        dsn: of the database; the server's sessions are called `orbit-server` there (OPS-03).
        pool_size: connections at most.
        role: role that every session takes on, when the login role is only a member of it.
        commit_mode: whether results wait for the disk one by one or together.
    """
    wakes = WakeHub()
    async with (
        Database(session_dsn(dsn, commit_mode), size_max=pool_size, role=role) as database,
        Database(dsn, part=READINESS_PART, size_max=1, role=role) as beside,  # busy sessions must not look like none
    ):

        async def check() -> tuple[str, ...]:
            return await beside.run(_reasons)

        readiness = Readiness(check)
        try:
            yield Services(
                database=database,
                tasks=Tasks(database, wakes, commit_mode),
                subscriptions=Subscriptions(database, wakes),
                deliveries=Deliveries(database),
                wakes=wakes,
                readiness=readiness,
            )
        finally:
            await readiness.close()


async def _reasons(connection: AsyncConnection[Any]) -> tuple[str, ...]:
    """Why this database cannot be served."""
    faults = await schema_faults(connection)
    return faults or tuple(str(row[0]) for row in await call(connection, "select * from orbit.readiness_v1()"))
