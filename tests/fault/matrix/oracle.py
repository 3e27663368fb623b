"""The oracle of the fault matrix: what was committed against what each destination really received and holds.

It asks three witnesses that know nothing of each other: the producer's own business table, the consumer's own effects,
receipts and record of calls, and the attempts that the dispatchers have written down. Where an event has to arrive
comes from the routes of the test. `read` collects what they say, `judge` is a pure comparison.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import Connection

from tests.fault.matrix.stage import Ledger
from tests.kit import handlers, invariants
from tests.kit.builders import consumer_of

Due = tuple[str, str]
"""One event at one consumer: consumer and event id."""
Call = tuple[int, str, str, int]
"""Attempt id, consumer, event id, attempt number."""

_COMMITTED: Final = "select event_id::text, event_type from public.placed_order"
_EFFECTS: Final = "select consumer, event_id::text from public.effect"
_RECEIPTS: Final = "select consumer, event_id::text from seapost.inbox_receipt"
_CALLS: Final = "select attempt_id, consumer, event_id::text, attempt_number from public.call"
_STARTS: Final = """
select s.attempt_id, m.consumer_name, s.event_id::text, s.attempt_number
from seapost.delivery_attempt_start as s
join seapost.delivery as d on (d.event_id, d.destination) = (s.event_id, s.destination)
join seapost.delivery_set_member as m on m.member_id = d.member_id"""
_LEASES: Final = "select count(*) from seapost.delivery_lease"

STALE_RULES: Final = (
    "a delivery has ended by another attempt than its last",
    "an attempt has ended after the next one began",
    "a delivery has ended twice",
)
"""What can only be when the word of a former holder was believed."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the witnesses say.

    Attributes:
        committed: event type by event id, from the business table.
        effects, receipts: how often each consumer holds each event.
        calls: every call that a consumer has written down before it looked at it.
        starts: every attempt that was written down before its call.
        stale_accepted: settles of former holders that changed something.
        broken: rules of the store that do not hold, see `tests.kit.invariants`.
    """

    committed: dict[str, str]
    effects: Counter[Due]
    receipts: Counter[Due]
    calls: list[Call]
    starts: set[Call]
    stale_accepted: int
    leases: int
    broken: list[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison, in numbers; all but the first three must be 0.

    Attributes:
        redeliveries: calls beyond the first for the same event at the same consumer.
        lost: events that are committed and not held by a consumer that must hold them, or that a producer was told are
            committed and are not.
        doubled: effects beyond the first of the same event at the same consumer.
        uncommitted: events that a consumer holds or was called for although no business row has them.
        unproved: calls that are not of an attempt written down for exactly this delivery, or of one called before.
        stale_accepted: settles of former holders that changed something.
    """

    events: int
    deliveries: int
    redeliveries: int
    lost: int
    doubled: int
    uncommitted: int
    unproved: int
    stale_accepted: int
    findings: list[str] = field(default_factory=list[str])


def read(source: Connection[Any], sink: Connection[Any]) -> Facts:
    """Ask both sides; they must be at rest."""
    stale = sum(len(source.execute(invariants.SOURCE_RULES[rule]).fetchall()) for rule in STALE_RULES)
    (leases,) = source.execute(_LEASES).fetchall()
    return Facts(
        committed=dict(source.execute(_COMMITTED).fetchall()),
        effects=Counter(sink.execute(_EFFECTS).fetchall()),
        receipts=Counter(sink.execute(_RECEIPTS).fetchall()),
        calls=sink.execute(_CALLS).fetchall(),
        starts=set(source.execute(_STARTS).fetchall()),
        stale_accepted=stale,
        leases=leases[0],
        broken=invariants.violations(source, sink),
    )


def judge(facts: Facts, ledger: Ledger) -> Verdict:
    """Hold what was committed against what is there."""
    routes = handlers.routes()
    due = {
        (consumer_of(destination), event_id)
        for event_id, event_type in facts.committed.items()
        for destination in routes[event_type]
    }
    held = set(facts.effects) & set(facts.receipts)
    seen = set(facts.effects) | set(facts.receipts) | {(consumer, event_id) for _, consumer, event_id, _ in facts.calls}
    missing, forgotten = due - held, ledger.committed - set(facts.committed)
    ghosts = seen - due
    doomed = ledger.doomed & (set(facts.committed) | {event_id for _, event_id in seen})
    doubles = {what: number for what, number in facts.effects.items() if number > 1}
    unknown = [call for call in facts.calls if call not in facts.starts]
    again = [call for call, number in Counter(facts.calls).items() if number > 1]
    findings = [
        f"{what}: {len(cases)}, for instance {next(iter(cases))}"
        for what, cases in {
            "committed and not held": missing,
            "confirmed to the producer and gone": forgotten,
            "held or called for, and never committed": ghosts,
            "doomed, and there all the same": doomed,
            "effects beyond the first": doubles,
            "calls without an attempt": unknown,
            "attempts called for twice": again,
        }.items()
        if cases
    ]
    if facts.leases:
        findings.append(f"leases left: {facts.leases}")
    return Verdict(
        events=len(facts.committed),
        deliveries=len(due),
        redeliveries=len(facts.calls) - len({call[1:3] for call in facts.calls}),
        lost=len(missing) + len(forgotten),
        doubled=sum(number - 1 for number in doubles.values()),
        uncommitted=len(ghosts) + len(doomed),
        unproved=len(unknown) + len(again),
        stale_accepted=facts.stale_accepted,
        findings=findings + facts.broken,
    )
