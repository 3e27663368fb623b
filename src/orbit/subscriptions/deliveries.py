"""Deliveries as the event connection uses them: claim, acknowledge, look whether a claim is worth while (section 9).

Each is one transaction of its own. What a claim leased is committed when `claim` returns, so it may be sent (LSE-22).
Secrets are made and hashed by the caller; only digests come here (LSE-34).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbit.store import deliveries as store
from orbit.store.deliveries import UNBOUNDED, Ack, AckAnswer, Claim, ClaimBounds, ClaimOrder, Leased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orbit.access.token import TokenDigest
    from orbit.store.database import Database

__all__ = ["UNBOUNDED", "Ack", "AckAnswer", "Claim", "ClaimBounds", "Deliveries", "Leased"]


class Deliveries:
    """The operations of section 24.4 and 24.5.

    Every method raises OrbitError with the codes of AUT-11; a group of ACKs is refused as a whole by these only.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self,
        token: TokenDigest,
        *,
        subscription_id: str,
        connection_id: str,
        capacity: int,
        requested: int,
        secrets_sha256: Sequence[bytes],
        bounds: ClaimBounds = UNBOUNDED,
    ) -> Claim:
        """Lease at most `requested` deliveries, as long as the connection holds at most `capacity` (LSE-26).

        Raises:
            OrbitError: also `EVENT_HISTORY_EXPIRED`, with nothing changed (MIG-18). After any other error the claim may
                have been committed, so the connection must not go on with its bounds: it ends.
        """
        order = ClaimOrder(subscription_id, connection_id, capacity, requested, secrets_sha256, bounds)
        return await self._database.run(lambda connection: store.claim(connection, token.sha256, order))

    async def acknowledge(
        self, token: TokenDigest, *, subscription_id: str, connection_id: str, acks: Sequence[Ack]
    ) -> list[AckAnswer]:
        """Settle ACKs together, each answered as if it had come alone, in their order (LSE-36)."""
        return await self._database.run(
            lambda connection: store.acknowledge(connection, token.sha256, subscription_id, connection_id, acks)
        )

    async def waiting(self, *, subscription_id: str, bounds: ClaimBounds = UNBOUNDED) -> bool:
        """Whether a claim could do anything; reads without lock and proves nothing (WSS-08)."""
        return await self._database.run(lambda connection: store.waiting(connection, subscription_id, bounds))
