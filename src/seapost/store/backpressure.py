"""Limits on what may wait for a destination (`functions/backpressure/`): set by an operator, asked for by looking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from seapost.store.calls import call_async, records_async

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.AsyncConnection[Any]


@dataclass(frozen=True, slots=True)
class LimitRecord:
    """The limit of one destination, and how its gate stands.

    Attributes:
        watermark: deliveries that may wait.
        action: refuse, slow or off.
        wait_seconds: what slow waits at most; 0 for the others.
        closed_for: how long appends are refused without a new count; zero when the gate is open.
        credit: deliveries that may be appended before somebody counts again.
        waiting: what the last closure saw; None when the gate is open.
    """

    destination: str
    watermark: int
    action: str
    wait_seconds: int
    changed_at: datetime
    closed_for: timedelta
    credit: int
    waiting: int | None

    @property
    def is_closed(self) -> bool:
        """Whether appends to this destination are refused at this moment."""
        return self.action != "off" and self.closed_for > timedelta()


async def limits(connection: Connection) -> list[LimitRecord]:
    """Every limit that was ever set, by destination; a destination without one is not limited."""
    return await records_async(
        connection,
        LimitRecord,
        "select destination, watermark, action, wait_seconds, changed_at, closed_for, credit, waiting"
        " from seapost.backpressure_show_v1()",
    )


async def set_limit(
    connection: Connection, *, destination: str, watermark: int, action: str, wait_seconds: int, actor: str
) -> None:
    """Decide how many deliveries may wait for a destination, and what append does with more.

    Raises:
        InvalidArgument: the destination is in no registered delivery set, or a value is beyond its limit.
    """
    _ = await call_async(
        connection,
        "select seapost.backpressure_set_v1(%s, %s::int, %s, %s::int, %s)",
        (destination, watermark, action, wait_seconds, actor),
    )
