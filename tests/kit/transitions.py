"""The transitions of a delivery as one table: which verb moves it from where to where, and on what condition.

`kit/automaton.py` (beside the real database) and `tests/model` (every state) move by this table and by nothing else,
and `tests/model/test_transition_table.py` holds the page on states to the same lines. A rule can be taken out of a
copy of the table, to see who notices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seapost.model.delivery import DeliveryStatus

PENDING: Final = DeliveryStatus.PENDING
LEASED: Final = DeliveryStatus.LEASED
ACKNOWLEDGED: Final = DeliveryStatus.ACKNOWLEDGED
QUARANTINED: Final = DeliveryStatus.QUARANTINED
TERMINAL: Final = frozenset({ACKNOWLEDGED, QUARANTINED})


class Verb(StrEnum):
    """What can be asked of a delivery."""

    APPEND = "append"
    CLAIM = "claim"
    RENEW = "renew"
    ACKNOWLEDGE = "acknowledge"
    RETRY = "retry"
    QUARANTINE = "quarantine"
    RECOVER = "recover"


class Guard(StrEnum):
    """What must be true for a verb to move a delivery."""

    MANDATORY = "the member is mandatory in the frozen definition"
    DUE = "due; not locked by another claim"
    HELD = "destination, event, attempt and token are equal"
    PROVEN = "receipt, event digest and member agree"
    EXPIRED = "the lease has expired by the database's clock"


class Refusal(StrEnum):
    """The answer to a verb that did not move a delivery."""

    STALE = "stale"
    INVALID = "invalid"
    PASSED_OVER = "passed over"


class Finish(StrEnum):
    """How an attempt ends."""

    ACKNOWLEDGED = "acknowledged"
    RETRYABLE = "retryable"
    NON_RETRYABLE = "non_retryable"
    EXPIRED = "lease_expired_unknown"


Facts = frozenset[Guard]

NOTHING: Final[Facts] = frozenset()
HELD: Final[Facts] = frozenset({Guard.HELD})
PROVEN: Final[Facts] = frozenset({Guard.HELD, Guard.PROVEN})
DUE: Final[Facts] = frozenset({Guard.DUE})
EXPIRED: Final[Facts] = frozenset({Guard.EXPIRED})
MANDATORY: Final[Facts] = frozenset({Guard.MANDATORY})


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of the table; `source` is None for a delivery that does not exist yet."""

    source: DeliveryStatus | None
    verb: Verb
    guards: Facts
    target: DeliveryStatus
    finish: Finish | None = None


TRANSITIONS: Final = (
    Transition(None, Verb.APPEND, MANDATORY, PENDING),
    Transition(PENDING, Verb.CLAIM, DUE, LEASED),
    Transition(LEASED, Verb.RENEW, HELD, LEASED),
    Transition(LEASED, Verb.ACKNOWLEDGE, PROVEN, ACKNOWLEDGED, Finish.ACKNOWLEDGED),
    Transition(LEASED, Verb.RETRY, HELD, PENDING, Finish.RETRYABLE),
    Transition(LEASED, Verb.QUARANTINE, HELD, QUARANTINED, Finish.NON_RETRYABLE),
    Transition(LEASED, Verb.RECOVER, EXPIRED, PENDING, Finish.EXPIRED),
)


class TransitionTable:
    """Answers what a verb does to a delivery of which these facts are true."""

    def __init__(self, transitions: Sequence[Transition] = TRANSITIONS) -> None:
        self.transitions = tuple(transitions)
        self._lines: Mapping[tuple[DeliveryStatus | None, Verb], Transition] = {
            (line.source, line.verb): line for line in self.transitions
        }
        self._answers: dict[tuple[DeliveryStatus | None, Verb, Facts], Transition | Refusal] = {}

    def answer(self, source: DeliveryStatus | None, verb: Verb, facts: Facts) -> Transition | Refusal:
        """The line that moves the delivery, or the refusal that the caller gets."""
        key = (source, verb, facts)
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._find(key)
        return found

    def without(self, verb: Verb, guard: Guard) -> TransitionTable:
        """A broken copy in which a verb does not ask for a guard."""
        lines = [
            Transition(line.source, line.verb, line.guards - {guard}, line.target, line.finish)
            if line.verb is verb
            else line
            for line in self.transitions
        ]
        assert lines != list(self.transitions), f"{verb} does not ask for {guard}"
        return TransitionTable(lines)

    def _find(self, key: tuple[DeliveryStatus | None, Verb, Facts]) -> Transition | Refusal:
        source, verb, facts = key
        line = self._lines.get((source, verb))
        if line is None:
            return Refusal.PASSED_OVER if verb in {Verb.APPEND, Verb.CLAIM, Verb.RECOVER} else Refusal.STALE
        missing = line.guards - facts
        if not missing:
            return line
        if Guard.HELD in missing:
            return Refusal.STALE
        return Refusal.INVALID if Guard.PROVEN in missing else Refusal.PASSED_OVER


TABLE: Final = TransitionTable()
