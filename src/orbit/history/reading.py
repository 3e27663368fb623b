"""A history in memory: its lines by kind, each operation once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, assert_never

from pydantic import ValidationError

from orbit.history.operations import (
    LINE,
    Ack,
    Aged,
    AnyLine,
    Claim,
    Confirm,
    Create,
    DeliveryFact,
    Operation,
    ResultFact,
    Retry,
    StreamFact,
    SubscriptionFact,
    Switch,
)

LINE_BYTES_MAX: Final = 4_194_304
"""Longer lines are no history of ours; a claim of 32 deliveries needs some 10 kB."""


class HistoryUnreadable(Exception):
    """A line is not what a history may hold; the message names the line and the member."""


@dataclass(slots=True)
class History:
    """Lines by kind; operations in the order in which they began.

    Attributes:
        open_operations: operations that nobody saw the end of.
    """

    confirms: list[Confirm] = field(default_factory=list[Confirm])
    creates: list[Create] = field(default_factory=list[Create])
    claims: list[Claim] = field(default_factory=list[Claim])
    acks: list[Ack] = field(default_factory=list[Ack])
    retries: list[Retry] = field(default_factory=list[Retry])
    switches: list[Switch] = field(default_factory=list[Switch])
    aged: list[Aged] = field(default_factory=list[Aged])
    streams: list[StreamFact] = field(default_factory=list[StreamFact])
    results: list[ResultFact] = field(default_factory=list[ResultFact])
    subscriptions: list[SubscriptionFact] = field(default_factory=list[SubscriptionFact])
    deliveries: list[DeliveryFact] = field(default_factory=list[DeliveryFact])
    open_operations: int = 0

    @classmethod
    def of(cls, lines: Iterable[AnyLine]) -> History:
        """Sort lines into their places; the last line of an operation's id counts."""
        operations: dict[str, Confirm | Create | Claim | Ack | Retry | Switch | Aged] = {}
        history = cls()
        for line in lines:
            match line:
                case Operation():
                    operations[line.id] = line
                case StreamFact():
                    history.streams.append(line)
                case ResultFact():
                    history.results.append(line)
                case SubscriptionFact():
                    history.subscriptions.append(line)
                case DeliveryFact():
                    history.deliveries.append(line)
                case _:
                    assert_never(line)
        for operation in sorted(operations.values(), key=lambda each: each.begin):
            history._place(operation)
        return history

    def _place(self, operation: Confirm | Create | Claim | Ack | Retry | Switch | Aged) -> None:
        self.open_operations += operation.end is None
        match operation:
            case Confirm():
                self.confirms.append(operation)
            case Create():
                self.creates.append(operation)
            case Claim():
                self.claims.append(operation)
            case Ack():
                self.acks.append(operation)
            case Retry():
                self.retries.append(operation)
            case Switch():
                self.switches.append(operation)
            case Aged():
                self.aged.append(operation)
            case _:
                assert_never(operation)

    @property
    def lines(self) -> int:
        """How many operations and facts there are."""
        operations = (self.confirms, self.creates, self.claims, self.acks, self.retries, self.switches, self.aged)
        facts = (self.streams, self.results, self.subscriptions, self.deliveries)
        return sum(len(each) for each in (*operations, *facts))


def parse_line(text: str, *, where: str) -> AnyLine:
    """Read one line.

    Raises:
        HistoryUnreadable: it is none; `where` says which.
    """
    try:
        return LINE.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        member = ".".join(str(part) for part in first["loc"])
        raise HistoryUnreadable(f"{where}: {member or 'line'}: {first['msg']}") from None


def read_history(*paths: Path) -> History:
    """Read one history out of its files, for instance what clients recorded and what the database says.

    Raises:
        HistoryUnreadable: a file holds something else.
        OSError: a file cannot be read.
    """

    def lines() -> Iterable[AnyLine]:
        for path in paths:
            with path.open(encoding="utf-8", errors="replace") as file:
                number = 0
                while text := file.readline(LINE_BYTES_MAX):
                    number += 1
                    if text.strip():
                        yield parse_line(text, where=f"{path.name}, line {number}")

    return History.of(lines())
