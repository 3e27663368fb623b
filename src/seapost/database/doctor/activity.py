"""What goes on in the server that makes the moving tables rot or producers wait (F74, F77): old snapshots, a full
notification queue. A role sees the snapshots of others only as a superuser or a member of pg_monitor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from seapost.database.doctor import access
from seapost.database.doctor.finding import Finding, FindingKind

if TYPE_CHECKING:
    from psycopg import AsyncConnection

SNAPSHOT_SECONDS: Final = 300.0
NOTIFICATION_QUEUE_SHARE_MAX: Final = 0.1


async def activity_findings(connection: AsyncConnection, *, snapshot_seconds: float) -> list[Finding]:
    """Warnings about what holds dead rows back, or notifications.

    Args:
        snapshot_seconds: a snapshot that is older keeps too many dead rows.
    """
    cursor = await connection.execute(access.SNAPSHOTS, {"seconds": snapshot_seconds})
    found = list(_snapshots(await cursor.fetchall()))
    row = await (await connection.execute(access.NOTIFICATION_QUEUE)).fetchone()
    if row is not None and row[0] > NOTIFICATION_QUEUE_SHARE_MAX:
        text = (
            f"the notification queue is {row[0]:.0%} full; a listener that sits in a transaction holds it, "
            "and when it is full every append that wakes a dispatcher fails"
        )
        found.append(Finding(FindingKind.WARNING, "notification queue", text))
    return found


def _snapshots(rows: list[tuple[str, float]]) -> Iterator[Finding]:
    for holder, seconds in rows:
        text = (
            f"{holder} holds a snapshot that is {seconds:.0f} s old: dead rows of the moving tables stay, "
            "and claims grow slower"
        )
        yield Finding(FindingKind.WARNING, holder, text)
