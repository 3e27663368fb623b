"""A producer that goes on whatever happens: small transactions, each a business change with its events, until SIGTERM.

What it knows of each transaction is reported around the COMMIT: `trying <ids>` before it, `committed <ids>` when the
server has said so. A transaction whose commit was not answered stays in doubt; it is not tried again.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

import psycopg
from psycopg import Connection

from seapost.model.errors import SeapostError
from seapost.outbox.append import append
from tests.kit.builders import PLACED, SHIPPED
from tests.kit.handlers import Placed, Shipped

EVENTS_MAX: Final = 6
PAUSE_SECONDS_MAX: Final = 0.016
SHARED_SHARE: Final = 0.3
CONNECT_SECONDS_MAX: Final = 2
"""libpq allows no less."""
_ORDER: Final = "insert into public.placed_order (event_id, number, event_type) values (%s, %s, %s)"


def run(dsn: str, *, seed: int, say: Callable[[str], None]) -> None:
    """Produce until SIGTERM; a session that breaks is replaced."""
    rng = random.Random(seed)
    pause = threading.Event()  # never set: a signal handler that sets what its own thread waits for can lock itself out
    stopping: list[int] = []

    def stop(signal_number: int, _frame: FrameType | None) -> None:
        stopping.append(signal_number)

    signal.signal(signal.SIGTERM, stop)
    say("ready")
    connection: Connection[Any] | None = None
    number = 0
    while not stopping:
        number += 1
        kinds = [rng.random() < SHARED_SHARE for _ in range(rng.randint(1, EVENTS_MAX))]
        try:
            if connection is None or connection.closed:
                connection = _connect(dsn)
            _produce(connection, number, kinds, say)
        except (psycopg.Error, SeapostError) as error:
            say(f"failed {type(error).__name__}")
            connection = _reset(connection)
        pause.wait(rng.uniform(0.0, PAUSE_SECONDS_MAX))
    if connection is not None:
        connection.close()


def _connect(dsn: str) -> Connection[Any]:
    connection: Connection[Any] = psycopg.connect(dsn, connect_timeout=CONNECT_SECONDS_MAX)
    connection.execute("set role seapost_producer")
    connection.commit()
    return connection


def _produce(connection: Connection[Any], number: int, kinds: Sequence[bool], say: Callable[[str], None]) -> None:
    """One transaction; `kinds` says of each event whether it goes to every destination."""
    made: list[str] = []
    for shared in kinds:
        event = Shipped(do="apply") if shared else Placed(do="apply")
        event_id = append(connection, event, key=f"order-{number}-{len(made)}", revision=number)
        connection.execute(_ORDER, (event_id, number, SHIPPED if shared else PLACED))
        made.append(str(event_id))
    say(f"trying {' '.join(made)}")
    connection.commit()
    say(f"committed {' '.join(made)}")


def _reset(connection: Connection[Any] | None) -> Connection[Any] | None:
    """The session with nothing open in it; None when it is of no more use."""
    if connection is None:
        return None
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()
        return None
    return connection
