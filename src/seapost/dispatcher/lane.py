"""One lane: claim, deliver, settle, and again; each destination runs several, so that the stages overlap (F23).

Authority: none of its own; it hands a batch from stage to stage.
States: waits for the claim turn → delivers → settles → waits again; ends when there is no next batch.
Failures: each stage answers for its own; what still escapes is logged, and the lane goes on after a backoff.
"""

from __future__ import annotations

import asyncio
from typing import Final

from seapost.dispatcher.batch import Batch
from seapost.dispatcher.breaker import Breaker, BreakerState
from seapost.dispatcher.context import Context
from seapost.dispatcher.deliver import CANCEL_SECONDS_MAX, Delivered, Deliverer
from seapost.dispatcher.intake import Intake
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.session import backoff_seconds
from seapost.dispatcher.settings import DestinationSettings
from seapost.dispatcher.settle import Settled, Settler
from seapost.dispatcher.wake import Wake
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

_LOG: Final = get_logger("seapost.dispatcher")


class Lane:
    """Works batch after batch of one destination."""

    def __init__(
        self,
        context: Context,
        settings: DestinationSettings,
        number: int,
        *,
        intake: Intake,
        deliverer: Deliverer,
        breaker: Breaker,
        wake: Wake,
    ) -> None:
        self.pulse = Pulse(f"{settings.name}/{number}", context.clock)
        self._context = context
        self._settings = settings
        self._intake = intake
        self._deliverer = deliverer
        self._settler = Settler(context, settings, self.pulse)
        self._breaker = breaker
        self._wake = wake

    async def run(self) -> None:
        """Work until the dispatcher stops."""
        failures = 0
        while (batch := await self._intake.next_batch(self.pulse)) is not None:
            try:
                await self.run_once(batch)
                failures = 0
            except Exception as error:  # noqa: BLE001 - a defect met in one batch must not stop the destination
                failures += 1
                _LOG.error(LogEvent.SETTLE_FAILED, destination=self._settings.name, exc_info=error)
                await asyncio.sleep(backoff_seconds(failures, self._context.rng))
            finally:
                self._intake.finished(batch)

    async def run_once(self, batch: Batch) -> Settled:
        """Deliver and settle one claimed batch."""
        self.pulse.expect(self._settings.call_seconds_max + CANCEL_SECONDS_MAX)
        try:
            delivered = await self._deliverer.run_once(batch)
        except BaseException:
            self._breaker.abandoned(batch.epoch)
            raise
        self._judge(batch, delivered)
        return await self._settler.run_once(batch, delivered.outcomes)

    def _judge(self, batch: Batch, delivered: Delivered) -> None:
        """Tell the breaker; its change of state is news for operators and for the lane that waits."""
        before = self._breaker.state
        if delivered.succeeded is None:
            self._breaker.abandoned(batch.epoch)
        elif delivered.succeeded:
            self._breaker.succeeded(batch.epoch)
        else:
            self._breaker.failed(batch.epoch, lone_retry=delivered.lone_retry)
        after = self._breaker.state
        if after is before:
            return
        self._context.metrics.breaker(self._settings.name, after)
        if after is BreakerState.CLOSED:
            _LOG.info(LogEvent.BREAKER_CLOSED, destination=self._settings.name)
            self._wake.nudge()
        elif after is BreakerState.OPEN:
            _LOG.warning(LogEvent.BREAKER_OPENED, destination=self._settings.name)
