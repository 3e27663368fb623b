"""Pulls of a connection (WSS-07, WSS-08, WSS-15): claim, send what was leased, or wait and claim again.

Nothing is sent before its claim has committed (LSE-22), and no claim begins before the ACKs that came before it are
settled. A waiting pull claims again when it is woken, and looks by itself every 500 ms with a read that locks nothing.
While frames of a claim are being sent, the turn is free: ACKs are settled meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

from orbit.access.token import new_secret
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.states import PullReason
from orbit.server.ws import writing
from orbit.server.ws.connection import Connection
from orbit.server.ws.ending import Ended, ending_of
from orbit.server.ws.settling import Settler
from orbit.subscriptions.bounds import ConnectionBounds
from orbit.subscriptions.deliveries import Claim, Deliveries
from orbit.wire.frames import Pull
from orbit.wire.times import time_text


class Puller:
    """Serves one pull at a time.

    Attributes:
        open: whether a pull is open.
        task: the task of the present or last pull.
    """

    def __init__(
        self,
        connection: Connection,
        deliveries: Deliveries,
        bounds: ConnectionBounds,
        settler: Settler,
        *,
        repeat_seconds: float,
    ) -> None:
        self._connection = connection
        self._deliveries = deliveries
        self._bounds = bounds
        self._settler = settler
        self._repeat_seconds = repeat_seconds
        self.open = False
        self.task: asyncio.Task[None] | None = None

    async def start(self, request: Pull) -> None:
        """Open a pull, or say that one is open."""
        if self.open:
            refused = OrbitError(ErrorCode.PULL_IN_PROGRESS)
            await self._connection.channel.send([writing.error(request.request_id, refused, fatal=False)])
            return
        self.open = True
        self.task = asyncio.create_task(self._connection.guard(self._pull(request)))

    async def _pull(self, request: Pull) -> None:
        connection = self._connection
        ends_at = connection.loop.time() + request.wait_ms / 1000
        await connection.listener.wait(0)  # whatever woke us before, the first claim sees it
        try:
            claim, proofs = await self._claim(request.max)
            while not claim.deliveries and await self._again(claim, ends_at):
                claim, proofs = await self._claim(request.max)
        except OrbitError as error:
            if error.facts.close is not None or error.code is not ErrorCode.EVENT_HISTORY_EXPIRED:
                raise Ended(ending_of(error, request.request_id)) from None
            self.open = False
            await connection.channel.send([writing.error(request.request_id, error, fatal=False)])
            return
        await connection.channel.send(self._frames(request.request_id, claim, proofs))
        self.open = False

    async def _claim(self, most: int) -> tuple[Claim, Sequence[str]]:
        connection = self._connection
        wanted = min(most, connection.capacity)
        secrets = [new_secret() for _ in range(wanted)]
        async with connection.turn:
            await self._settler.settle_waiting()
            claim = await self._deliveries.claim(
                connection.token,
                subscription_id=connection.subscription_id,
                connection_id=connection.connection_id,
                capacity=connection.capacity,
                requested=wanted,
                secrets_sha256=[digest for _, digest in secrets],
                bounds=self._bounds.next(),
            )
            self._bounds.claimed(claim)
            connection.confirmed()
        return claim, [proof for proof, _ in secrets]

    async def _again(self, claim: Claim, ends_at: float) -> bool:
        """Wait until another claim is worth while; False when the pull is over."""
        connection = self._connection
        # Still behind the head (MAT-17), or found nothing within bounds only (LSE-35).
        if claim.scan_again or self._bounds.again_at_once:  # MAT-17; LSE-35
            return not connection.stopping
        connection.waits_for_room = claim.reason in {PullReason.CAPACITY_FULL, PullReason.WINDOW_FULL}
        try:
            while not connection.stopping and (left := ends_at - connection.loop.time()) > 0:
                woken = await connection.listener.wait(min(left, self._repeat_seconds))
                if connection.stopping:
                    break
                if (woken and not connection.waits_for_room) or await self._worth_a_claim():
                    return True
        finally:
            connection.waits_for_room = False
        return False

    async def _worth_a_claim(self) -> bool:
        return await self._deliveries.waiting(
            subscription_id=self._connection.subscription_id, bounds=self._bounds.next()
        )

    def _frames(self, request_id: str, claim: Claim, proofs: Sequence[str]) -> Iterator[str]:
        """The deliveries of a claim and the end of the pull; made one by one, as they are sent."""
        head = writing.delivery_head(request_id, self._connection.subscription_id)
        texts: dict[datetime, str] = {}
        for leased, proof in zip(claim.deliveries, proofs, strict=False):
            expires_at = leased.lease_expires_at
            yield writing.delivery(
                head,
                delivery_id=leased.delivery_id,
                event_id=leased.event_id,
                event_type=leased.event_type,
                sequence=leased.event_sequence,
                lease_epoch=leased.lease_epoch,
                lease_secret=proof,
                lease_expires_at=texts.get(expires_at) or texts.setdefault(expires_at, time_text(expires_at)),
                attempts=leased.attempts,
                attempt_budget=leased.attempt_budget,
                snapshot_json=leased.snapshot_json,
            )
        yield writing.pull_done(
            request_id,
            delivered=len(claim.deliveries),
            reason=claim.reason,
            pending_count=claim.pending_count,
            max_pending=claim.max_pending,
        )
