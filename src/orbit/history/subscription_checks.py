"""H3, H4 and H12: what a subscription got, how much at once, and when it was paused."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import datetime

from orbit.history.operations import DATABASE, Claim, DeliveryFact, ResultFact, SubscriptionFact, Switch
from orbit.history.reading import History
from orbit.history.verdict import Invariant, Verdict

H3, H4, H12 = Invariant.H3, Invariant.H4, Invariant.H12


def check_subscriptions(history: History, verdict: Verdict) -> None:
    """Hold each subscription against H3, H4 and H12."""
    deliveries: defaultdict[str, list[DeliveryFact]] = defaultdict(list)
    for delivery in history.deliveries:
        deliveries[delivery.subscription].append(delivery)
    by_queue: defaultdict[str, list[ResultFact]] = defaultdict(list)
    for result in sorted(history.results, key=lambda each: each.sequence):
        by_queue[result.queue].append(result)
    for subscription in history.subscriptions:
        own = deliveries[subscription.subscription]
        _check_completeness(subscription, own, by_queue[subscription.queue], verdict)
        _check_window(subscription, own, verdict)
    _check_reported_windows(history, verdict)
    _check_claimed_prefix(history, by_queue, verdict)
    _check_pauses(history, verdict)


def _matching(subscription: SubscriptionFact, queue: list[ResultFact], last: int) -> dict[int, str]:
    """Sequence and event of what a subscription must have up to a sequence; the journal rows are in order."""
    first = bisect_right(queue, subscription.from_sequence, key=lambda result: result.sequence)
    end = bisect_right(queue, last, key=lambda result: result.sequence)
    wanted = frozenset(subscription.types)
    return {result.sequence: result.event for result in queue[first:end] if result.event_type in wanted}


def _check_completeness(
    subscription: SubscriptionFact, deliveries: list[DeliveryFact], queue: list[ResultFact], verdict: Verdict
) -> None:
    """H3 by the database's facts: exactly the matching rows from the start to the cursor, each once."""
    expected = _matching(subscription, queue, subscription.cursor)
    seen: dict[int, str] = {}
    for delivery in deliveries:
        first = delivery.sequence not in seen
        seen[delivery.sequence] = delivery.event
        verdict.expect(first, H3, delivery.delivery, f"sequence {delivery.sequence} was materialised twice")
        right = expected.get(delivery.sequence) == delivery.event
        verdict.expect(right, H3, delivery.delivery, f"sequence {delivery.sequence} does not belong to it")
    for sequence in expected.keys() - seen.keys():
        verdict.refuse(H3, subscription.subscription, f"sequence {sequence} lies behind the cursor and was skipped")


def _check_claimed_prefix(history: History, by_queue: dict[str, list[ResultFact]], verdict: Verdict) -> None:
    """H3 by the audit log: first leases come in ascending order, so nothing below the greatest one may be missing."""
    subscriptions = {subscription.subscription: subscription for subscription in history.subscriptions}
    claimed: defaultdict[str, set[int]] = defaultdict(set)
    for claim in history.claims:
        if claim.process == DATABASE:
            claimed[claim.subscription].update(leased.sequence for leased in claim.leased)
    for name, sequences in claimed.items():
        subscription = subscriptions.get(name)
        if subscription is None or not sequences:
            continue
        expected = _matching(subscription, by_queue.get(subscription.queue, []), max(sequences))
        verdict.count(H3, len(expected))
        for sequence in expected.keys() - sequences:
            verdict.refuse(H3, name, f"sequence {sequence} was passed over by leases of greater ones")


def _check_window(subscription: SubscriptionFact, deliveries: list[DeliveryFact], verdict: Verdict) -> None:
    """H4 by the database's facts: one step up for each delivery made, one down for each acknowledged."""
    steps = [(delivery.created_at, 1) for delivery in deliveries]
    steps += [(delivery.acked_at, -1) for delivery in deliveries if delivery.acked_at is not None]
    pending = 0
    for at, step in sorted(steps):
        pending += step
        within = pending <= subscription.max_pending
        verdict.expect(within, H4, subscription.subscription, f"{pending} pending at {at.isoformat()}")
    counted = subscription.pending_count == pending
    verdict.expect(counted, H4, subscription.subscription, f"says {subscription.pending_count}, has {pending}")


def _check_reported_windows(history: History, verdict: Verdict) -> None:
    """H4 by what clients were told."""
    for claim in history.claims:
        if claim.pending_count is not None and claim.max_pending is not None:
            within = claim.pending_count <= claim.max_pending
            verdict.expect(within, H4, claim.subscription, f"a pull ended with {claim.pending_count} pending")


def _check_pauses(history: History, verdict: Verdict) -> None:
    """H12, for each clock: a claim that begins after the pause's answer must not end before the resume begins."""
    switches: defaultdict[tuple[str, bool], list[Switch]] = defaultdict(list)
    for switch in history.switches:
        switches[switch.subscription, switch.process == DATABASE].append(switch)
    claims: defaultdict[tuple[str, bool], list[Claim]] = defaultdict(list)
    for claim in history.claims:
        if claim.leased and claim.end is not None:
            claims[claim.subscription, claim.process == DATABASE].append(claim)
    for key, own in switches.items():
        pauses = _pauses(own)
        starts = [paused for paused, _ in pauses]
        verdict.count(H12, len(pauses))
        for claim in claims[key]:
            place = bisect_right(starts, claim.begin) - 1
            if place >= 0 and starts[place] < claim.begin:
                _, resumed = pauses[place]
                ended = claim.end or claim.begin
                broken = resumed is None or ended < resumed
                verdict.expect(not broken, H12, key[0], f"leased at {ended.isoformat()}, while paused")


def _pauses(switches: list[Switch]) -> list[tuple[datetime, datetime | None]]:
    """From the answer of each pause to the begin of the next resume; None: never resumed.

    Pauses whose answer is unknown prove nothing. An answered resume without an end still ends the pause.
    """
    spans: list[tuple[datetime, datetime | None]] = []
    for switch in switches:
        if switch.op == "pause" and switch.end is not None:
            spans.append((switch.end, None))
        elif switch.op == "resume" and spans and spans[-1][1] is None:
            spans[-1] = (spans[-1][0], switch.begin)
    return spans
