"""The dispatcher: one process's loops over its destinations, their start, their stop and their signs of life.

Authority: none over any delivery; every change is a fenced call. The owner name is fresh for each start (F15).
States: started → running → stopping: nothing is claimed, calls may finish within the drain time → hurrying: what still
runs is cancelled and given back → stopped, with no lease left behind (F16). A second `stop` hurries at once.
Failures: each loop answers for its own and goes on; one destination never stops another. While the database is away
everything waits with a jittered backoff. What a killed process held is recovered by any dispatcher within a lease.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, ReceiptRegistry
from seapost.database.listener import Listener
from seapost.dispatcher.batch import Cancelled
from seapost.dispatcher.context import Context, new_owner
from seapost.dispatcher.destination import Destination, DestinationLoops
from seapost.dispatcher.pulse import Turn
from seapost.dispatcher.recover import Recoverer
from seapost.dispatcher.renew import Leases, Renewer
from seapost.dispatcher.session import Pool, backoff_seconds, is_transient
from seapost.dispatcher.settings import DispatcherSettings
from seapost.dispatcher.stopping import Stopping
from seapost.model.errors import InvalidSetting, UnsupportedDatabase
from seapost.store import delivery_set
from seapost.store import dispatcher as sleep_store
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger
from seapost.telemetry.metrics import PROCESS, Metrics

OWNER_LENGTH_MAX: Final = 64
WATCH_SECONDS: Final = 1.0
ABORT_SECONDS: Final = 1.0

_LOG: Final = get_logger("seapost.dispatcher")


class Dispatcher:
    """Delivers what is due to the given destinations until told to stop.

    Args:
        pool: connections to the producer's database, with `settings.role_timeouts` and at least
            `settings.pool_size(...)` of them.
        destinations: each name once.
        listen_dsn: a direct connection for notifications; None: polling only.
        listen_role: role that this connection takes on.
        owner: this process start, as seen in the attempts; None makes a fresh one.
        receipts: the receipt types that acknowledgements may name.
    """

    def __init__(
        self,
        pool: Pool,
        destinations: Sequence[Destination],
        *,
        listen_dsn: str | None = None,
        listen_role: str | None = None,
        owner: str | None = None,
        settings: DispatcherSettings | None = None,
        receipts: ReceiptRegistry = DEFAULT_RECEIPTS,
        metrics: Metrics = PROCESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        names = [destination.settings.name for destination in destinations]
        if not names or len(set(names)) != len(names):
            raise InvalidSetting("A dispatcher serves at least one destination, and each name once.")
        if owner is not None and not 1 <= len(owner) <= OWNER_LENGTH_MAX:
            raise InvalidSetting(f"owner: 1 to {OWNER_LENGTH_MAX} characters")
        settings = settings or DispatcherSettings()
        self._stopping = Stopping(give_back_seconds=settings.give_back_seconds, clock=clock)
        self._context = Context(
            pool=pool,
            settings=settings,
            receipts=receipts,
            owner=owner or new_owner(),
            stopping=self._stopping,
            metrics=metrics,
            clock=clock,
            rng=random.Random(),
        )
        self._leases = Leases()
        self._listener = self._make_listener(listen_dsn, listen_role)
        self._loops = {
            destination.settings.name: DestinationLoops(
                self._context, destination, leases=self._leases, listener=self._listener
            )
            for destination in destinations
        }
        self._renewer = Renewer(
            self._context, self._leases, min(loops.settings.renew_every_seconds for loops in self._loops.values())
        )
        self._recoverer = Recoverer(self._context, self._nudge)
        self._drained: asyncio.TimerHandle | None = None
        self._unfit: UnsupportedDatabase | None = None

    @property
    def owner(self) -> str:
        """The name of this process start."""
        return self._context.owner

    @property
    def listener(self) -> Listener | None:
        """The listening connection, None when the dispatcher only polls."""
        return self._listener

    def progress(self) -> list[Turn]:
        """The last sign of life of each loop; one that is `overdue` hangs, and the process is not alive."""
        lanes = [lane.pulse for loops in self._loops.values() for lane in loops.lanes]
        return [pulse.turn() for pulse in (*lanes, self._renewer.pulse, self._recoverer.pulse)]

    def stop(self) -> None:
        """Order the end of `run`: claim nothing more and let calls finish; a second order hurries.

        Call it in the event loop, for instance from a signal handler.
        """
        if self._stopping.requested.is_set():
            self._hurry()
            return
        _LOG.info(LogEvent.DISPATCHER_STOPPING, owner=self.owner)
        self._stopping.request()
        for loops in self._loops.values():
            loops.nudge()
        self._drained = asyncio.get_running_loop().call_later(self._context.settings.drain_seconds, self._hurry)

    async def run(self) -> None:
        """Deliver until `stop`; returns when nothing is held any more.

        Raises:
            InvalidSetting: another delivery set version is active than the settings expect (AMB-37).
            UnsupportedDatabase: `listen_dsn` leads through a connection pooler.
        """
        await self._check_delivery_set()
        _LOG.info(LogEvent.DISPATCHER_STARTED, owner=self.owner, destinations=sorted(self._loops))
        try:
            async with asyncio.TaskGroup() as background:
                tasks = [
                    background.create_task(self._renewer.run()),
                    background.create_task(self._recoverer.run()),
                    background.create_task(self._watch()),
                ]
                if self._listener is not None:
                    tasks.append(background.create_task(self._listen(self._listener)))
                await self._run_lanes()
                await self._context.hang_up(ABORT_SECONDS)
                for task in tasks:
                    task.cancel()
        finally:
            if self._drained is not None:
                self._drained.cancel()
            _LOG.info(LogEvent.DISPATCHER_STOPPED, owner=self.owner)
        if self._unfit is not None:
            raise self._unfit

    async def _run_lanes(self) -> None:
        """All lanes of all destinations; after the order to hurry they get the time to give back, and no more."""
        async with asyncio.TaskGroup() as group:
            lanes = [group.create_task(lane.run()) for loops in self._loops.values() for lane in loops.lanes]
            enforcer = group.create_task(self._enforce(lanes))
            await asyncio.wait(lanes)
            enforcer.cancel()

    async def _enforce(self, lanes: list[asyncio.Task[None]]) -> None:
        await self._stopping.hurried.wait()
        await asyncio.sleep(self._context.settings.give_back_seconds)
        await self._context.hang_up(ABORT_SECONDS)
        for lane in lanes:
            lane.cancel()

    def _hurry(self) -> None:
        if not self._stopping.hurried.is_set():
            self._stopping.hurry()
            for batch, _ in self._leases.batches():
                batch.cancel(Cancelled.STOPPED)

    async def _watch(self) -> None:
        """Show what changes without an event of its own: time passes, a connection is lost."""
        connected: bool | None = None
        while True:
            for loops in self._loops.values():
                self._context.metrics.breaker(loops.settings.name, loops.breaker.state)
            self._context.metrics.healthy("dispatcher", not any(turn.overdue for turn in self.progress()))
            if self._listener is not None and self._listener.connected is not connected:
                connected = self._listener.connected
                self._context.metrics.listener(connected)
                if not connected and self._listener.connections:
                    _LOG.warning(LogEvent.LISTENER_LOST, reason=self._listener.last_error)
            await asyncio.sleep(WATCH_SECONDS)

    def _make_listener(self, dsn: str | None, role: str | None) -> Listener | None:
        if dsn is None:
            return None
        return Listener(
            dsn,
            on_notify=self._nudge,
            on_connected=self._listening,
            declare=sleep_store.sleep,
            withdraw=sleep_store.wake,
            role=role,
        )

    async def _listen(self, listener: Listener) -> None:
        try:
            await listener.run()
        except UnsupportedDatabase as error:
            self._unfit = error
            self.stop()

    def _listening(self) -> None:
        """Notifications before this moment are lost: look everywhere (F72)."""
        self._context.metrics.listener(connected=True)
        _LOG.info(LogEvent.LISTENER_CONNECTED, owner=self.owner)
        for loops in self._loops.values():
            loops.sweep()

    def _nudge(self, destination: str) -> None:
        loops = self._loops.get(destination)
        if loops is not None:
            loops.nudge()

    async def _check_delivery_set(self) -> None:
        """Refuse to start on another delivery set than expected; wait for a database that is not there yet."""
        expected = self._context.settings.expected_delivery_set_version
        failures = 0
        while expected is not None and not self._stopping.requested.is_set():
            try:
                async with self._context.session() as connection:
                    versions = await delivery_set.versions(connection)
            except Exception as error:
                if not is_transient(error):
                    raise
                failures += 1
                _LOG.warning(LogEvent.CLAIM_FAILED, exc_info=error)
                await asyncio.sleep(backoff_seconds(failures, self._context.rng))
                continue
            active = [version.delivery_set_version for version in versions if version.status == "active"]
            if expected not in active:
                found = repr(active[0]) if active else "none"
                raise InvalidSetting(f"expected_delivery_set_version: {expected!r} is expected, active is {found}.")
            return
