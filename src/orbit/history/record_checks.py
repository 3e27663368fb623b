"""H7 and H13: receipts that repeat, and the audit log beside the state that it explains."""

from __future__ import annotations

from collections import Counter, defaultdict

from orbit.history.operations import DATABASE, DeliveryFact, SubscriptionFact
from orbit.history.reading import History
from orbit.history.verdict import Invariant, Verdict
from orbit.model.states import DeliveryState, SubscriptionStatus

H7, H13 = Invariant.H7, Invariant.H13


def check_records(history: History, verdict: Verdict) -> None:
    """Hold receipts against H7, and the audit log against H13, where the history holds what the database says."""
    _check_receipts(history, verdict)
    if any(each.process == DATABASE for each in (*history.confirms, *history.creates, *history.claims)):
        _check_results(history, verdict)
        _check_deliveries(history, verdict)
        _check_subscriptions(history, verdict)


def _check_receipts(history: History, verdict: Verdict) -> None:
    """H7: one key of one process, or one attempt, has one receipt."""
    receipts: dict[str, str] = {}
    keyed = [(f"{each.op} {each.key}", each.receipt) for each in (*history.creates, *history.retries) if each.key]
    keyed += [(f"{each.op} {each.subscription} {each.key}", each.receipt) for each in history.switches if each.key]
    keyed += [(f"attempt {each.attempt}", each.receipt) for each in history.confirms if each.attempt]
    for subject, receipt in keyed:
        if receipt is not None:
            first = receipts.setdefault(subject, receipt)
            verdict.expect(receipt == first, H7, subject, "the same request got two different receipts")


def _check_results(history: History, verdict: Verdict) -> None:
    audited = Counter((each.event, each.sequence) for each in history.confirms if each.process == DATABASE)
    for result in history.results:
        rows = audited[result.event, result.sequence]
        verdict.expect(rows == 1, H13, result.event, f"{rows} audit rows for sequence {result.sequence}")


def _check_deliveries(history: History, verdict: Verdict) -> None:
    epochs: defaultdict[str, list[int]] = defaultdict(list)
    for claim in history.claims:
        if claim.process == DATABASE:
            for leased in claim.leased:
                epochs[leased.delivery].append(leased.epoch)
    acks = Counter(each.delivery for each in history.acks if each.process == DATABASE)
    added: Counter[str] = Counter()
    for retry in history.retries:
        if retry.process == DATABASE:
            added[retry.delivery] += retry.additional_attempts
    budgets = {each.subscription: each.max_attempts for each in history.subscriptions}
    for delivery in history.deliveries:
        name = delivery.delivery
        complete = sorted(epochs[name]) == list(range(1, delivery.epoch + 1)) and delivery.attempts == delivery.epoch
        verdict.expect(complete, H13, name, f"epochs audited {sorted(epochs[name])}, row says {delivery.epoch}")
        _check_end(delivery, acks[name], verdict)
        if delivery.subscription in budgets:
            owed = budgets[delivery.subscription] + added[name]
            verdict.expect(delivery.budget == owed, H13, name, f"budget {delivery.budget}, audited {owed}")


def _check_end(delivery: DeliveryFact, rows: int, verdict: Verdict) -> None:
    owed = int(delivery.state is DeliveryState.ACKED)
    verdict.expect(rows == owed, H13, delivery.delivery, f"{rows} acknowledgements audited, is {delivery.state}")


def _check_subscriptions(history: History, verdict: Verdict) -> None:
    creates = Counter(each.subscription for each in history.creates if each.process == DATABASE)
    pauses: Counter[str] = Counter()
    resumes: Counter[str] = Counter()
    for switch in history.switches:
        if switch.process == DATABASE:
            (pauses if switch.op == "pause" else resumes)[switch.subscription] += 1
    for subscription in history.subscriptions:
        name = subscription.subscription
        verdict.expect(creates[name] == 1, H13, name, f"{creates[name]} creations audited")
        _check_switches(subscription, pauses[name], resumes[name], verdict)


def _check_switches(subscription: SubscriptionFact, pauses: int, resumes: int, verdict: Verdict) -> None:
    """Only pause and resume change the revision, in turns, and the last of them decides the status."""
    name, said = subscription.subscription, f"{pauses} pauses and {resumes} resumes audited"
    counted = subscription.revision == 1 + pauses + resumes
    verdict.expect(counted, H13, name, f"{said}, revision {subscription.revision}")
    status = SubscriptionStatus.PAUSED if pauses > resumes else SubscriptionStatus.ACTIVE
    verdict.expect(subscription.status is status, H13, name, f"{said}, status {subscription.status}")
