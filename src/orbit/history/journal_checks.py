"""H1, H2 and H8: the journal, and whether everybody tells the same of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from orbit.history.operations import DATABASE, Confirm, ResultFact
from orbit.history.reading import History
from orbit.history.verdict import Invariant, Verdict

H1, H2, H8 = Invariant.H1, Invariant.H2, Invariant.H8


@dataclass(frozen=True, slots=True)
class _Mention:
    """What one line says of an event; None is nothing."""

    event: str
    sequence: int
    event_type: str | None = None
    snapshot: str | None = None


def check_journal(history: History, verdict: Verdict) -> None:
    """Hold the journal against H1, H2 and H8."""
    journal = {result.event: result for result in history.results}
    _check_sequences(history, verdict)
    _check_content(history, journal, verdict)
    _check_order(history, journal, verdict)


def _check_sequences(history: History, verdict: Verdict) -> None:
    """H1: sequences of a namespace are retained_from to the head, each once; an event is one row."""
    streams = {stream.namespace: stream for stream in history.streams}
    by_namespace: defaultdict[str, list[ResultFact]] = defaultdict(list)
    events: set[str] = set()
    for result in history.results:
        by_namespace[result.namespace].append(result)
        verdict.expect(result.event not in events, H1, result.event, "stands in the journal twice")
        events.add(result.event)
    for namespace, results in by_namespace.items():
        stream = streams.get(namespace)
        expected = 1 if stream is None else stream.retained_from
        for result in sorted(results, key=lambda each: each.sequence):
            if result.sequence < expected and stream is not None and result.sequence < stream.retained_from:
                continue
            where = f"{namespace}/{result.sequence}"
            verdict.expect(result.sequence == expected, H1, where, f"stands where sequence {expected} should stand")
            expected = result.sequence + 1
        if stream is not None:
            last = expected - 1
            verdict.expect(stream.last_sequence == last, H1, namespace, f"head {stream.last_sequence}, journal {last}")


def _mentions(history: History) -> Iterator[_Mention]:
    """What clients, deliveries and audit say of events."""
    for confirm in history.confirms:
        if confirm.event is not None and confirm.sequence is not None:
            yield _Mention(confirm.event, confirm.sequence, confirm.event_type)
    for claim in history.claims:
        for leased in claim.leased:
            yield _Mention(leased.event, leased.sequence, leased.event_type, leased.snapshot)
    for delivery in history.deliveries:
        yield _Mention(delivery.event, delivery.sequence)


def _check_content(history: History, journal: dict[str, ResultFact], verdict: Verdict) -> None:
    """H8: what is spoken of is in the journal; H1: everybody says the same of it."""
    known = {
        result.event: _Mention(result.event, result.sequence, result.event_type, result.snapshot)
        for result in history.results
    }
    for mention in _mentions(history):
        if journal:
            verdict.expect(mention.event in journal, H8, mention.event, f"sequence {mention.sequence} is not there")
        first = known.setdefault(mention.event, mention)
        verdict.expect(
            mention.sequence == first.sequence, H1, mention.event, f"{first.sequence} and {mention.sequence}"
        )
        for name in ("event_type", "snapshot"):
            said, before = getattr(mention, name), getattr(first, name)
            if said is not None and before is not None:
                verdict.expect(said == before, H1, mention.event, f"{name} is {before} and {said}")


def _check_order(history: History, journal: dict[str, ResultFact], verdict: Verdict) -> None:
    """H2, for each kind of clock: clients' own, and the database's.

    In the database a result begins with its state event and ends with its journal row, which is written under the lock
    of the stream: who begins after that end comes later.
    """
    spans: defaultdict[tuple[str, bool], list[tuple[datetime, datetime, int]]] = defaultdict(list)
    for confirm in history.confirms:
        if confirm.end is not None and confirm.sequence is not None and confirm.process != DATABASE:
            namespace = _namespace_of(confirm, journal)
            spans[namespace, False].append((confirm.begin, confirm.end, confirm.sequence))
    for result in history.results:
        spans[result.namespace, True].append((result.begin, result.end, result.sequence))
    for (namespace, _), group in spans.items():
        _sweep(namespace, group, verdict)


def _namespace_of(confirm: Confirm, journal: dict[str, ResultFact]) -> str:
    result = journal.get(confirm.event or "")
    return confirm.namespace if result is None else result.namespace


def _sweep(namespace: str, group: list[tuple[datetime, datetime, int]], verdict: Verdict) -> None:
    """Walk by begin; whatever ended before must have a smaller sequence than what begins now."""
    ended = sorted((end, sequence) for _, end, sequence in group)
    place = greatest = 0
    for begin, _, sequence in sorted(group):
        while place < len(ended) and ended[place][0] < begin:
            greatest = max(greatest, ended[place][1])
            place += 1
        where = f"{namespace}/{sequence}"
        verdict.expect(sequence > greatest, H2, where, f"began after sequence {greatest} had been confirmed")
