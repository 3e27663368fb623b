"""ACKs of a connection: those that arrived while a transaction ran are settled together (LSE-36).

Answers leave in the order of the frames. A group waits for its turn and is taken when it has it, so it is as large
as the wait was long, at most 32. A claim settles what has arrived before it, so that the places which these ACKs free
are filled by this claim and not by one of its own. Whatever was received is settled, also when the client has left
meanwhile: its proof counts, and nobody has to send it again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from orbit.access.token import secret_digest
from orbit.model.errors import OrbitError
from orbit.model.limits import ACKS_PER_TRANSACTION_MAX
from orbit.server.ws import writing
from orbit.server.ws.channel import Gone
from orbit.server.ws.connection import Connection
from orbit.server.ws.ending import LEFT, Ended, ending_of
from orbit.server.ws.reading import AckWords
from orbit.subscriptions.bounds import ConnectionBounds
from orbit.subscriptions.deliveries import Ack, AckAnswer, Deliveries

ACKS_WAITING_MAX: Final = 256
"""So many unsettled ACKs stop the reading: the client feels it, the server's memory does not."""


class Settler:
    """Settles what `add` brings, in a task that lives as long as there is something to settle."""

    def __init__(self, connection: Connection, deliveries: Deliveries, bounds: ConnectionBounds) -> None:
        self._connection = connection
        self._deliveries = deliveries
        self._bounds = bounds
        self._waiting: deque[AckWords] = deque()
        self._room = asyncio.Event()
        self._room.set()
        self.task: asyncio.Task[None] | None = None

    async def add(self, ack: AckWords) -> None:
        """Take one ACK; waits while too many are unsettled."""
        self._waiting.append(ack)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._connection.guard(self._settle()))
        if len(self._waiting) >= ACKS_WAITING_MAX:
            self._room.clear()
            await self._room.wait()

    async def settle_waiting(self) -> None:
        """Settle and answer all that has arrived; the caller holds the turn."""
        connection = self._connection
        while self._waiting:
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), ACKS_PER_TRANSACTION_MAX))]
            self._room.set()
            answers = await self._transaction(group)
            try:
                await connection.channel.send(
                    [_answer(ack, answer) for ack, answer in zip(group, answers, strict=True)]
                )
            except Gone:
                connection.end(LEFT)

    async def _settle(self) -> None:
        while self._waiting:
            async with self._connection.turn:
                await self.settle_waiting()

    async def _transaction(self, group: Sequence[AckWords]) -> Sequence[AckAnswer]:
        connection = self._connection
        acks = [Ack(delivery_id, epoch, secret_digest(proof)) for _, delivery_id, epoch, proof in group]
        try:
            answers = await self._deliveries.acknowledge(
                connection.token,
                subscription_id=connection.subscription_id,
                connection_id=connection.connection_id,
                acks=acks,
            )
        except OrbitError as error:
            self._waiting.clear()
            raise Ended(ending_of(error, group[0][0])) from None
        connection.confirmed()
        self._bounds.settled([ack.delivery_id for ack, answer in zip(acks, answers, strict=True) if not answer.code])
        connection.freed()
        return answers


def _answer(ack: AckWords, answer: AckAnswer) -> str:
    request_id, delivery_id, _, _ = ack
    if answer.code is not None or answer.acked_at is None:
        return writing.rejected(request_id, delivery_id, str(answer.code))
    return writing.acked(request_id, delivery_id, answer.acked_at, duplicate=answer.duplicate)
