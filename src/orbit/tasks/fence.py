"""The flush fence: results commit without waiting for the disk, and no answer leaves before the disk has them.

A plain confirmation holds the rows of its queue and of its namespace's stream until its commit is on disk, so a queue
does one result per flush. With `CommitMode.FENCED` the database functions commit without that wait, and the service
lets no receipt out before one synchronous commit, shared by all who wait, has returned after theirs (JRN-17, decision
0016). The log of PostgreSQL is written in order: that flush is the flush of every commit before it.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from psycopg import conninfo

from orbit.store import tasks as store

if TYPE_CHECKING:
    from orbit.store.database import Database

SETTING: Final = "orbit.commit"


class CommitMode(StrEnum):
    """How results are committed."""

    PLAIN = "plain"
    FENCED = "fenced"


def session_dsn(dsn: str, mode: CommitMode) -> str:
    """Connection string of sessions that commit results in this mode; only a `Tasks` of the same mode may use them."""
    options = conninfo.conninfo_to_dict(dsn).get("options") or ""
    return conninfo.make_conninfo(dsn, options=f"{options} -c {SETTING}={mode}".strip())


class FlushFence:
    """One synchronous commit at a time, for everybody who came before it began."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._asked = 0
        self._covered = 0
        self.commits = 0
        """How many synchronous commits there were, for figures and tests."""

    async def passed(self) -> None:
        """Return when every commit that returned before this call is on disk.

        A commit that is under way may have begun too early to cover the caller, so the caller waits for the next one:
        the first in line makes it, for all who are in line by then. Whoever makes it and fails or is cancelled fails
        alone; the next in line makes another.

        Raises:
            OrbitError: the database could not be asked; nothing is known of the flush then, so nothing may be answered.
        """
        self._asked += 1
        mine = self._asked
        async with self._turn:
            if self._covered >= mine:
                return
            covers = self._asked
            await self._database.run(store.fence)
            self.commits += 1
            self._covered = covers
