"""A database server crashes, by immediate shutdown, and is started again."""

from __future__ import annotations

import random
from typing import ClassVar

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import Home, Homes

HOMES = (Homes(Home.OWN, Home.SHARED), Homes(Home.SHARED, Home.OWN), Homes(Home.OWN, Home.OWN))


class ServerRestarted(Fault):
    """The producer's server, the consumers' server, or both as one; every session breaks, what was committed stays."""

    name: ClassVar[str] = "server-restarted"

    @classmethod
    def homes(cls, rng: random.Random) -> Homes:
        """Whichever is to crash lies on the durable server."""
        return rng.choice(HOMES)

    def strike(self) -> None:
        """Crash and start, a moment into the work."""
        stage = self.stage
        crashed = stage.servers[stage.homes.index(Home.OWN)]
        assert crashed is not None
        seconds = stage.linger(0.0, 0.2)
        where = " and ".join(side for side, home in stage.homes._asdict().items() if home is Home.OWN)
        stage.plan(f"crash the server of {where} {seconds:.3f} s into the work")
        crashed.restart(immediate=True)
        stage.machine.skip()
