"""The consumer's own copy of the delivery set registry, kept in memory (REF-11, AMB-03).

Definitions are immutable, so a line once read is true for ever. Only a version that is not known yet makes
the directory read again, and at most once in `REFRESH_SECONDS_MIN`, whatever a caller sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from seapost.database.pool import AsyncPool
from seapost.model.delivery_set import DefinitionQuad, Member
from seapost.model.outcome import ErrorCode, NonRetryable, Outcome, Retryable
from seapost.store import delivery_set

REFRESH_SECONDS_MIN: Final = 1.0

_Line = tuple[DefinitionQuad, str, str, str]


class MemberDirectory:
    """Finds the frozen member that a delivery names, among those registered in this database."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._definitions: dict[str, DefinitionQuad] = {}
        self._members: dict[_Line, Member] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    async def know(self, versions: Iterable[str]) -> None:
        """Read the registry when one of these delivery set versions is not known yet."""
        if all(version in self._definitions for version in versions):
            return
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if self._read_at is None or now - self._read_at >= REFRESH_SECONDS_MIN:
                await self.refresh()
                self._read_at = now

    async def refresh(self) -> None:
        """Read the registry; raises what the database raises."""
        async with self._pool.connection() as connection:
            members = await delivery_set.members(connection)
        for member in members.values():
            self._definitions[member.definition.version] = member.definition
            line = (member.definition, member.event_type, member.schema_version, member.destination)
            self._members[line] = member

    def find(
        self, definition: DefinitionQuad, event_type: str, schema_version: str, destination: str
    ) -> Member | Outcome:
        """The member with exactly these coordinates, or the outcome of a delivery that names none."""
        known = self._definitions.get(definition.version)
        if known is None:
            return Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE)
        if known != definition:
            return NonRetryable(ErrorCode.DIGEST_CONFLICT)
        member = self._members.get((definition, event_type, schema_version, destination))
        return NonRetryable(ErrorCode.IDENTITY_CONFLICT) if member is None else member
