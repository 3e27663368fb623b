"""What the parts of one session share: whom it serves, whose turn it is in the database, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Final

from orbit.access.token import TokenDigest
from orbit.journal.wake import Listener
from orbit.model.errors import OrbitError
from orbit.model.limits import (
    HELLO_SECONDS,
    PULL_REPEAT_SECONDS,
    RIGHTS_CHECK_SECONDS,
    SHUTDOWN_SECONDS,
    WRITE_SECONDS,
)
from orbit.server.catalog import LogEvent
from orbit.server.ws.channel import Channel, Gone
from orbit.server.ws.ending import LEFT, Ended, Ending, defect, ending_of
from seapost.telemetry.logging import get_logger

_log: Final = get_logger("orbit.server")


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Times of a session, in seconds.

    Attributes:
        hello: the first frame must have come (WSS-06).
        write: the client must have taken something, or it is cut.
        check: a connection that uses the database less often is checked for its rights this often, so that a revoked
            credential ends it within this time, whatever it does (F87).
        repeat: a waiting pull looks by itself (WSS-08).
        stop: running transactions may take this long when the connection ends (WSS-14).
    """

    hello: float = HELLO_SECONDS
    write: float = WRITE_SECONDS
    check: float = RIGHTS_CHECK_SECONDS
    repeat: float = PULL_REPEAT_SECONDS
    stop: float = SHUTDOWN_SECONDS


class Connection:
    """One connection after its `hello`.

    Attributes:
        connection_id: made by this server; nobody else can name it (LSE-11).
        turn: held during a transaction: a connection runs one at a time.
        checked_at: when the database last confirmed the credential's rights, on the loop's clock.
        stopping: nothing new is begun.
        waits_for_room: a pull waits for places that ACKs free.
    """

    def __init__(
        self,
        channel: Channel,
        token: TokenDigest,
        *,
        connection_id: str,
        subscription_id: str,
        capacity: int,
        listener: Listener,
    ) -> None:
        self.channel = channel
        self.token = token
        self.connection_id = connection_id
        self.subscription_id = subscription_id
        self.capacity = capacity
        self.listener = listener
        self.loop = asyncio.get_running_loop()
        self.turn = asyncio.Lock()
        self.checked_at = self.loop.time()
        self.stopping = False
        self.waits_for_room = False
        self._ending: asyncio.Future[Ending] = self.loop.create_future()

    def confirmed(self) -> None:
        """A transaction has just checked the credential's rights (AUT-12)."""
        self.checked_at = self.loop.time()

    def freed(self) -> None:
        """ACKs were settled; a pull that waits for room looks again."""
        if self.waits_for_room:
            self.listener.wake()

    def end(self, ending: Ending) -> None:
        """Begin to end; the first reason counts."""
        if not self._ending.done():
            self.stopping = True
            self._ending.set_result(ending)
            self.listener.wake()

    async def ended(self) -> Ending:
        """Wait for the reason to end."""
        return await self._ending

    async def guard(self, work: Coroutine[object, object, None]) -> None:
        """Run a part of the session; whatever goes wrong in it ends the connection."""
        try:
            await work
        except Gone:
            self.end(LEFT)
        except Ended as ended:
            self.end(ended.ending)
        except OrbitError as error:
            self.end(ending_of(error, None))
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection ends in order
            self.end(noted_defect(error, self.connection_id))


def noted_defect(error: Exception, connection_id: str) -> Ending:
    """The end after a failure of ours: the log learns its kind and place, the client nothing."""
    _log.error(LogEvent.SESSION_FAILED, connection_id=connection_id, exc_info=error)
    return defect()
