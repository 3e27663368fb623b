"""No connection is to be had: every slot of a pool is held by a statement that waits, or the server takes no more."""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import ClassVar, Final

import psycopg

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import ALL_SHARED, Home, Homes
from tests.kit.scene import Side

HELD_SECONDS: Final = (0.8, 2.5)
HOMES: Final = (ALL_SHARED, Homes(Home.OWN, Home.SHARED), Homes(Home.SHARED, Home.OWN))
_LOCK_LEASES: Final = "lock table seapost.delivery_lease in access exclusive mode"
_LOCK_EFFECTS: Final = "lock table public.effect in access exclusive mode"


class PoolExhausted(Fault):
    """Dispatchers or consumers wait for a connection until the holders let go."""

    name: ClassVar[str] = "pool-exhausted"

    @classmethod
    def homes(cls, rng: random.Random) -> Homes:
        """A server that is to be full is not the shared one."""
        return rng.choice(HOMES)

    def strike(self) -> None:
        """Hold what the seed says for a while."""
        stage = self.stage
        if Home.OWN in stage.homes:
            name, side = ("source", stage.source) if stage.homes.source is Home.OWN else ("sink", stage.sink)
            self._fill(name, side)
            return
        of_dispatchers = self.rng.random() < 0.5
        side, statement = (stage.source, _LOCK_LEASES) if of_dispatchers else (stage.sink, _LOCK_EFFECTS)
        what = "dispatchers" if of_dispatchers else "consumers"
        with psycopg.connect(side.database.dsn) as holder:
            holder.execute(statement)
            seconds = stage.linger(*HELD_SECONDS)
            stage.plan(f"hold every session of the {what} at a lock for {seconds:.3f} s")

    def _fill(self, name: str, side: Side) -> None:
        """Take every connection that the server gives, those of its users as well."""
        part = "dispatcher" if name == "source" else "inbox"
        with ExitStack() as held:
            for _ in range(2):
                _take_all(side, held)
                side.terminate(part, least=0)
            _take_all(side, held)
            seconds = self.stage.linger(*HELD_SECONDS)
            self.stage.plan(f"take every connection of the server of {name} for {seconds:.3f} s")


def _take_all(side: Side, held: ExitStack) -> None:
    while True:
        try:
            connection = psycopg.connect(side.database.dsn, application_name="holder")
        except psycopg.OperationalError:
            return
        held.callback(connection.close)
