"""The network swallows every packet without a word: a half-open connection to a database or to the consumer."""

from __future__ import annotations

import sys
from typing import ClassVar, Final

from psycopg import conninfo

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import Stage
from tests.kit.orders import OrderOptions
from tests.kit.proxy import Proxy

QUICK: Final = {
    "connect_timeout": 2,
    "keepalives": 1,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 1,
    "tcp_user_timeout": 1_000,
}
"""The limits of `seapost.database.pool.NETWORK_LIMITS`, shortened as the lease is."""
DEAF_SECONDS: Final = (0.5, 2.0)


class HalfOpen(Fault):
    """For a while nothing arrives and nothing is refused; then packets pass again, or only new connections do."""

    name: ClassVar[str] = "half-open"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._place = self.rng.choice(
            ["one dispatcher's database", "both dispatchers' database", "the consumers' database"]
            + ["the consumer"] * 2 * stage.over_http
        )
        self._wire: Proxy | None = None

    @classmethod
    def gap(cls) -> str | None:
        """The wire lets the kernel drop packets, which only Linux does for it."""
        return None if sys.platform == "linux" else "packets can be swallowed on Linux only"

    def start(self) -> None:
        """Put the wire where the seed wants it."""
        stage = self.stage
        first, second, consumer = OrderOptions(), OrderOptions(), OrderOptions()
        if self._place == "the consumer":
            self._wire = stage.held.enter_context(Proxy(("127.0.0.1", stage.port)))
            first["url"] = second["url"] = self._wire.url
        elif self._place == "the consumers' database":
            dsn = self._before(stage.sink.database.dsn)
            if stage.over_http:
                consumer["sink"] = dsn
            else:
                first["sink"] = second["sink"] = dsn
        else:
            first["source"] = self._before(stage.source.database.dsn)
            if self._place.startswith("both"):
                second["source"] = first["source"]
        stage.start_crew(consumer=consumer, first=first, second=second)

    def _before(self, dsn: str) -> str:
        self._wire = self.stage.held.enter_context(Proxy.before_database(dsn))
        return conninfo.make_conninfo(self._wire.dsn(dsn), **QUICK)

    def strike(self) -> None:
        """Swallow, wait, and end it in one of two ways."""
        stage, wire = self.stage, self._wire
        assert wire is not None
        end = self.rng.choice(["everything arrives", "old connections stay dead"])
        wire.vanish()
        seconds = stage.linger(*DEAF_SECONDS)
        stage.plan(f"{self._place} swallowed for {seconds:.3f} s, then {end}")
        if end == "everything arrives":
            wire.heal()
        else:
            wire.forget()
