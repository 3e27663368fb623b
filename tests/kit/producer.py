"""A producer that dies by SIGKILL again and again, right before, in the middle of and right after its COMMIT (F01).

Each victim is a fork of its own: it changes its business table and appends in the same transaction, a few times, and
then kills itself at a moment that the seed has chosen; some are killed from outside at a random moment instead. What is
known to be committed is reported after the server said so.
"""

from __future__ import annotations

import os
import random
import select
import signal
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import psycopg
from psycopg import Connection

from seapost.outbox.append import append
from tests.kit.handlers import Placed

TABLES: Final = """
create table public.placed_order (
    event_id uuid not null, number int not null, event_type text not null default 'order.placed@1');
grant select, insert on public.placed_order to seapost_producer"""
ROUNDS_MAX: Final = 4
SECONDS_MAX: Final = 0.04
_ORDER: Final = "insert into public.placed_order (event_id, number) values (%s, %s)"


class Moment(StrEnum):
    """When a victim dies in its last transaction."""

    BEFORE_APPEND = "before append"
    BEFORE_COMMIT = "before commit"
    COMMIT_SENT = "commit sent"
    AFTER_COMMIT = "after commit"
    FROM_OUTSIDE = "from outside"


def run(dsn: str, *, seed: int, kills: int, say: Callable[[str], None]) -> None:
    """Have `kills` producers die, one after the other."""
    rng = random.Random(seed)
    moments = list(Moment)
    for number in range(kills):
        moment = moments[number % len(moments)]
        rounds = rng.randint(1, ROUNDS_MAX)
        seconds = rng.uniform(0.0, SECONDS_MAX)
        alive, held_by_victim = os.pipe()
        victim = os.fork()
        if victim == 0:
            _produce(dsn, number, moment, rounds, say)
        os.close(held_by_victim)
        if moment is Moment.FROM_OUTSIDE:
            select.select([alive], [], [], seconds)  # ends early when the victim does
            os.kill(victim, signal.SIGKILL)
        os.close(alive)
        _, status = os.waitpid(victim, 0)
        say(f"died {number} {moment} {os.waitstatus_to_exitcode(status)}")


def _produce(dsn: str, number: int, moment: Moment, rounds: int, say: Callable[[str], None]) -> None:
    """Work until killed; a victim that is to be killed from outside never ends by itself."""
    try:
        with psycopg.connect(dsn) as connection:
            connection.execute("set role seapost_producer")
            connection.commit()
            while rounds > 1 or moment is Moment.FROM_OUTSIDE:
                rounds -= 1
                event_id = _change(connection, number)
                connection.commit()
                say(f"committed {event_id}")
            _die(connection, number, moment, say)
    finally:
        os._exit(1)


def _change(connection: Connection[Any], number: int) -> str:
    """One business change with its event, in the open transaction."""
    event = append(connection, Placed(do="apply"), key=f"order-{os.urandom(8).hex()}", revision=1)
    connection.execute(_ORDER, (event, number))
    return str(event)


def _die(connection: Connection[Any], number: int, moment: Moment, say: Callable[[str], None]) -> None:
    if moment is Moment.BEFORE_APPEND:
        connection.execute(_ORDER, ("00000000-0000-7000-8000-000000000000", number))
        os.kill(os.getpid(), signal.SIGKILL)
    event_id = _change(connection, number)
    say(f"{'doomed' if moment is Moment.BEFORE_COMMIT else 'in doubt'} {event_id}")
    if moment is Moment.BEFORE_COMMIT:
        os.kill(os.getpid(), signal.SIGKILL)
    if moment is Moment.COMMIT_SENT:
        connection.pgconn.send_query(b"commit")
        connection.pgconn.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    connection.commit()
    say(f"committed {event_id}")
    os.kill(os.getpid(), signal.SIGKILL)
