"""What every process does before it works: wait for its database, and prove the release that it writes into."""

from __future__ import annotations

import random
import time
from threading import Event
from typing import TYPE_CHECKING, Final

import psycopg

from oceanway.installation.release import check_release
from seapost.cli.output import write_stderr
from seapost.database.pool import part_dsn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seapost.contracts import events
    from seapost.outbox.application import Application

DELAY_SECONDS_MIN: Final = 0.05
DELAY_SECONDS_MAX: Final = 2.0


def wait_for_release(
    dsn: str,
    application: Application,
    written: Sequence[type[events.Event]],
    *,
    wait_seconds: float,
    stop: Event,
) -> bool:
    """Return True once the database answers and its active definition holds these events; False when told to stop.

    Raises:
        ReleaseIncomplete: the definition lacks one of them (SET-37).
        psycopg.OperationalError: the database did not answer in time; what it said last.
    """
    deadline = time.monotonic() + wait_seconds
    delay = DELAY_SECONDS_MIN
    while not stop.is_set():
        try:
            with psycopg.connect(part_dsn(dsn, "start", program="oceanway"), autocommit=True) as connection:
                check_release(connection, application, written)
                return True
        except psycopg.OperationalError as error:
            if time.monotonic() >= deadline:
                raise
            if delay == DELAY_SECONDS_MIN:
                write_stderr(f"oceanway: waiting for the database: {' '.join(str(error).split())}")
            _ = stop.wait(random.uniform(delay / 2, delay))
            delay = min(DELAY_SECONDS_MAX, delay * 2)
    return False
