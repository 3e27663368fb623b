"""What a test orders from a process: one line of JSON that says which part it plays and how it shall die."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypedDict

from tests.kit.crash import Blow, Point, Trap
from tests.kit.handlers import DESTINATIONS

Part = Literal["dispatcher", "consumer", "producer", "feeder"]


class OrderOptions(TypedDict, total=False):
    """What a test may say about a process; see `Order`."""

    source: str
    sink: str
    listen: str
    url: str
    port: int
    owner: str
    destinations: tuple[str, ...]
    destination_settings: Mapping[str, Any]
    dispatcher_settings: Mapping[str, Any]
    consumer_timeouts: Mapping[str, float]
    trap: Trap | None
    clock_shift_seconds: float
    seed: int
    kills: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One process.

    Attributes:
        source: the producer's database; `listen` replaces it for the listening connection.
        sink: the consumers' database. A dispatcher that has one receives in its own process, else it calls `url`.
        port: where a consumer listens.
        owner: the dispatcher's name, to give two of them the same one; empty: a fresh one, as always.
        destination_settings, dispatcher_settings: replace the quick ones of `tests.kit.worker`.
        consumer_timeouts: limits of the consumers' sessions, in place of the patient ones there.
        clock_shift_seconds: how wrong this process's own clock is.
        seed, kills: for a producer, see `tests.kit.producer`; a feeder has a seed (`tests.kit.feeder`).
        report, log: files of this process.
    """

    part: Part
    name: str
    source: str = ""
    sink: str = ""
    listen: str = ""
    url: str = ""
    port: int = 0
    owner: str = ""
    destinations: tuple[str, ...] = DESTINATIONS
    destination_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dispatcher_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    consumer_timeouts: Mapping[str, float] = field(default_factory=dict[str, float])
    trap: Trap | None = None
    clock_shift_seconds: float = 0.0
    seed: int = 0
    kills: int = 0
    report: str = ""
    log: str = ""

    def to_line(self) -> str:
        """As one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Order:
        """From the parsed line."""
        trap = document.pop("trap")
        destinations = tuple(document.pop("destinations"))
        laid = None if trap is None else Trap(Point(trap["point"]), trap["nth"], Blow(trap["blow"]))
        return cls(**document, destinations=destinations, trap=laid)
