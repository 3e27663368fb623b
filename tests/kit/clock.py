"""A clock for test databases: `seapost.clock_now()` answers what the test says (F19)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from psycopg import Connection

START: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Clock:
    """The database's clock, held by the test; it stands still until it is moved.

    The connection must be the superuser's, in autocommit mode: every session sees a move at once.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self.start = self.now = START
        connection.execute("create table public.test_clock (moment timestamptz not null)")
        connection.execute("insert into public.test_clock values (%s)", (START,))
        connection.execute("grant select on public.test_clock to public")
        connection.execute(
            "create or replace function seapost.clock_now() returns timestamptz language sql volatile"
            " as 'select c.moment from public.test_clock as c'"
        )

    def set(self, moment: datetime) -> None:
        """Make it this time."""
        self.now = moment
        self._connection.execute("update public.test_clock set moment = %s", (moment,))

    def advance(self, seconds: float) -> datetime:
        """Move the clock forward, or back by a negative number; returns the new time."""
        self.set(self.now + timedelta(seconds=seconds))
        return self.now
