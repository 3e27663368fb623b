"""Connections reset in the middle of a message: before a commit arrives, or before its answer does."""

from __future__ import annotations

from typing import ClassVar, Final

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import Stage
from tests.kit.orders import OrderOptions
from tests.kit.proxy import Proxy, Way

CUTS: Final = (4, 8)
BYTES_MAX: Final = 12_000


class ConnectionCut(Fault):
    """Several cuts at seeded bytes of what is sent up or comes back, on every kind of connection."""

    name: ClassVar[str] = "connection-cut"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._wires: dict[str, Proxy] = {}

    def start(self) -> None:
        """A wire before each server."""
        stage = self.stage
        source, sink = stage.source.database.dsn, stage.sink.database.dsn
        self._wires = {
            "the producer's database": stage.held.enter_context(Proxy.before_database(source)),
            "the consumers' database": stage.held.enter_context(Proxy.before_database(sink)),
        }
        above, below = self._wires.values()
        if stage.over_http:
            wire = self._wires["the consumer"] = stage.held.enter_context(Proxy(("127.0.0.1", stage.port)))
            told = OrderOptions(source=above.dsn(source), url=wire.url)
        else:
            told = OrderOptions(source=above.dsn(source), sink=below.dsn(sink))
        stage.start_crew(consumer={"sink": below.dsn(sink)}, first=told, second=told)

    def strike(self) -> None:
        """Cut as the seed says; a cut that nothing comes by is taken back."""
        stage = self.stage
        for _ in range(self.rng.randint(*CUTS)):
            name = self.rng.choice(list(self._wires))
            way = self.rng.choice(list(Way))
            number = self.rng.randrange(1, BYTES_MAX)
            stage.plan(f"cut {name} {way} after {number} bytes")
            wire = self._wires[name]
            wire.cut_after(way, number)
            stage.burst(150, 50)
            stage.await_true(lambda wire=wire, way=way: not wire.is_armed(way) or stage.unended() == 0, "the cut")
        for wire in self._wires.values():
            wire.disarm()
