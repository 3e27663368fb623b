"""Producers die in the middle of their transactions, before, in and after the COMMIT (F01)."""

from __future__ import annotations

from typing import ClassVar, Final

from psycopg import conninfo

from tests.fault.matrix.fault import Fault
from tests.kit.orders import Order

KILLS: Final = 10


class ProducerKilled(Fault):
    """What was committed is delivered, whether the producer lived to hear of it or not, and nothing else is."""

    name: ClassVar[str] = "producer-killed"

    def strike(self) -> None:
        """Ten victims, two at each moment around the COMMIT."""
        stage = self.stage
        seed = self.rng.getrandbits(32)
        stage.plan(f"{KILLS} producers killed, seed {seed}")
        dsn = conninfo.make_conninfo(stage.source.database.dsn, application_name="seapost-producer")
        killer = stage.start(Order(part="producer", name="producer", source=dsn, seed=seed, kills=KILLS))
        killer.await_report("ended")
