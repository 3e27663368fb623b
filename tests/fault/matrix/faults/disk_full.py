"""The disk under both databases is full: statements fail, or the server crashes and cannot come back by itself."""

from __future__ import annotations

import random
from typing import ClassVar, Final

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.servers import Ballast, revive, why_no_small_disk
from tests.fault.matrix.stage import Home, Homes

FULL_SECONDS: Final = (0.2, 1.0)
SIGNS: Final = ("DiskFull", "No space left on device")


class DiskFull(Fault):
    """Somebody fills the disk until a statement has failed of it, and frees it a while later."""

    name: ClassVar[str] = "disk-full"

    @classmethod
    def homes(cls, rng: random.Random) -> Homes:
        """Both on the small disk."""
        del rng
        return Homes(Home.SMALL, Home.SMALL)

    @classmethod
    def gap(cls) -> str | None:
        """A small file system has to be mounted."""
        return why_no_small_disk()

    def strike(self) -> None:
        """Fill, see the failure, free, and start the server where it has given up, as an operator would."""
        stage = self.stage
        server = stage.servers[0]
        assert server is not None
        ballast = Ballast(server.data_directory.parent)
        stage.held.callback(ballast.free)
        ballast.fill()
        stage.await_true(
            lambda: server.process_id is None or self._was_felt(), "a failure for want of room", ballast.fill
        )
        seconds = stage.linger(*FULL_SECONDS)
        died = server.process_id is None
        stage.plan(f"disk full for {seconds:.3f} s{', server down' if died else ''}")
        ballast.free()
        revive(server)
        if died:
            stage.machine.skip()

    def _was_felt(self) -> bool:
        said = "\n".join(part for worker in self.stage.workers for part in (worker.log, *worker.reports))
        return any(sign in said for sign in SIGNS)
