"""What the producer tells the world, and who must hear it: two event types and their routes."""

from __future__ import annotations

import seapost

PUNCTUALITY = "punctuality"
MILEAGE = "mileage"


class FlightCompleted(seapost.Event, type="flight.completed@1", producer="flights"):
    """A flight left New York; one that was diverted has no recorded arrival, and so no arrival delay."""

    carrier: str
    origin: str
    destination: str
    distance_miles: int
    tailnum: str | None = None
    arrival_delay_minutes: int | None = None


class FlightCancelled(seapost.Event, type="flight.cancelled@1", producer="flights"):
    """A flight never left."""

    carrier: str
    origin: str
    destination: str


application = seapost.Application("flights")
application.route(FlightCompleted, PUNCTUALITY, MILEAGE)
application.route(FlightCancelled, PUNCTUALITY)
