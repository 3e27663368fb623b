"""One destination of a dispatcher: its settings, its transport, and the lanes that serve it apart from all others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from seapost.dispatcher.breaker import Breaker
from seapost.dispatcher.claim import Claimer
from seapost.dispatcher.context import Context
from seapost.dispatcher.deliver import Deliverer
from seapost.dispatcher.intake import Intake
from seapost.dispatcher.lane import Lane
from seapost.dispatcher.renew import Leases
from seapost.dispatcher.settings import DestinationSettings
from seapost.dispatcher.wake import Sleeper, Wake
from seapost.transport.protocol import Transport


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to deliver, and how. The transport stays its maker's: the dispatcher does not close it."""

    settings: DestinationSettings
    transport: Transport


class DestinationLoops:
    """The loops of one destination, and the ways to wake them."""

    def __init__(self, context: Context, destination: Destination, *, leases: Leases, listener: Sleeper | None) -> None:
        settings = destination.settings
        self.settings = settings
        self._wake = Wake(
            settings.name,
            listener,
            poll_seconds=context.settings.poll_seconds,
            stopping=context.stopping,
            rng=context.rng,
        )
        self.breaker = Breaker(
            failures_max=settings.breaker_failures,
            open_seconds=settings.breaker_open_seconds,
            batch_size=settings.batch_size,
            clock=context.clock,
            rng=context.rng,
            on_answer=self._wake.nudge,
        )
        self._claimer = Claimer(context, settings)
        intake = Intake(context, settings, claimer=self._claimer, wake=self._wake, breaker=self.breaker)
        deliverer = Deliverer(context, settings, destination.transport, leases)
        self.lanes: Iterable[Lane] = [
            Lane(context, settings, number, intake=intake, deliverer=deliverer, breaker=self.breaker, wake=self._wake)
            for number in range(1, settings.lanes + 1)
        ]
        context.metrics.breaker(settings.name, self.breaker.state)

    def nudge(self) -> None:
        """Something may be due, or the order to stop has come."""
        self._wake.nudge()

    def sweep(self) -> None:
        """Look everywhere, now: notifications may have been lost (F72)."""
        self._claimer.sweep()
        self._wake.nudge()
