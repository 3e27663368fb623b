"""H5, H6 and H9: leases of a delivery one after another, and the one ACK that counts."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from orbit.history.operations import DATABASE, Ack, Aged, Claim, Leased, Retry
from orbit.history.reading import History
from orbit.history.verdict import Invariant, Verdict
from orbit.model.limits import BACKOFF_SECONDS_MAX
from orbit.model.states import DeliveryState

H5, H6, H9 = Invariant.H5, Invariant.H6, Invariant.H9


@dataclass(frozen=True, slots=True)
class _Handout:
    """One lease of one delivery: by whom it was given, when, and what it said."""

    claim: Claim
    leased: Leased

    @property
    def end(self) -> datetime:
        """The latest moment at which it can have been given."""
        return self.claim.end or self.claim.begin


def check_leases(history: History, verdict: Verdict) -> None:
    """Hold each delivery against H5, H6 and H9."""
    handouts: defaultdict[tuple[str, bool], list[_Handout]] = defaultdict(list)
    for claim in history.claims:
        for leased in claim.leased:
            handouts[leased.delivery, claim.process == DATABASE].append(_Handout(claim, leased))
    aged = _moments(history.aged)
    retried = _moments(history.retries)
    for (delivery, _), leases in handouts.items():
        leases.sort(key=lambda each: (each.leased.epoch, each.end))
        _check_epochs(delivery, leases, verdict)
        _check_times(delivery, leases, verdict, aged=aged[delivery], retried=retried[delivery])
    _check_agreement(handouts, verdict)
    _check_acks(history, handouts, verdict)


def _check_epochs(delivery: str, leases: list[_Handout], verdict: Verdict) -> None:
    """H5: no epoch twice, and a later epoch is not given before an earlier one."""
    verdict.count(H5, len(leases))
    for earlier, later in pairwise(leases):
        if earlier.leased.epoch == later.leased.epoch:
            verdict.refuse(H5, delivery, f"epoch {later.leased.epoch} was given twice")
        elif later.end < earlier.claim.begin:
            verdict.refuse(H5, delivery, f"epoch {later.leased.epoch} came before epoch {earlier.leased.epoch}")


def _moments(operations: Sequence[Aged | Retry]) -> defaultdict[str, list[datetime]]:
    """When something was done to a delivery, in order."""
    moments: defaultdict[str, list[datetime]] = defaultdict(list)
    for operation in operations:
        moments[operation.delivery].append(operation.begin)
    return moments


def _happened(moments: list[datetime], earlier: _Handout, later: _Handout) -> bool:
    """Whether one of these moments lies between two leases."""
    place = bisect_left(moments, earlier.claim.begin)
    return place < len(moments) and moments[place] <= later.end


def _check_times(
    delivery: str, leases: list[_Handout], verdict: Verdict, *, aged: list[datetime], retried: list[datetime]
) -> None:
    """H5: a lease ends before the next begins; H9: the backoff lies between them, unless an operator intervened."""
    for earlier, later in pairwise(leases):
        if later.leased.epoch != earlier.leased.epoch + 1:
            continue  # this clock has not seen the one between
        if _happened(aged, earlier, later):
            continue
        over = earlier.leased.lease_expires_at
        verdict.expect(
            later.end >= over, H5, delivery, f"epoch {later.leased.epoch} at {later.end.isoformat()}, while leased"
        )
        if not _happened(retried, earlier, later):
            due = over + backoff(earlier.leased.attempts)
            early = f"attempt {later.leased.attempts} at {later.end.isoformat()}, due {due.isoformat()}"
            verdict.expect(later.end >= due, H9, delivery, early)


def backoff(attempts: int) -> timedelta:
    """The pause after so many attempts: 1, 2, 4, 8, 16, then 30 seconds (LSE-13)."""
    return timedelta(seconds=min(2 ** min(attempts - 1, 5), BACKOFF_SECONDS_MAX))


def _check_agreement(handouts: dict[tuple[str, bool], list[_Handout]], verdict: Verdict) -> None:
    """H5: what a client was given under an epoch is what the audit log says of it."""
    for (delivery, by_database), leases in handouts.items():
        if by_database or (delivery, True) not in handouts:
            continue
        audited = {each.leased.epoch: each.leased for each in handouts[delivery, True]}
        for each in leases:
            said = audited.get(each.leased.epoch)
            same = said is not None and said.lease_expires_at == each.leased.lease_expires_at
            verdict.expect(same, H5, delivery, f"epoch {each.leased.epoch} is not what the audit log says")


def _check_acks(history: History, handouts: dict[tuple[str, bool], list[_Handout]], verdict: Verdict) -> None:
    acked_at = {
        fact.delivery: fact.acked_at
        for fact in history.deliveries
        if fact.state is DeliveryState.ACKED and fact.acked_at is not None
    }
    by_delivery: defaultdict[tuple[str, bool], list[Ack]] = defaultdict(list)
    for ack in history.acks:
        if ack.outcome == "ACKED":
            by_delivery[ack.delivery, ack.process == DATABASE].append(ack)
    facts = frozenset(fact.delivery for fact in history.deliveries)
    for key, acks in by_delivery.items():
        delivery = key[0]
        effective = [ack for ack in acks if not ack.duplicate]
        verdict.expect(len(effective) <= 1, H6, delivery, f"{len(effective)} effective acknowledgements")
        times = {ack.acked_at for ack in acks if ack.acked_at is not None}
        if delivery in acked_at:
            times.add(acked_at[delivery])
        verdict.expect(len(times) <= 1, H6, delivery, "its acknowledgement has two times")
        if delivery in facts:
            verdict.expect(delivery in acked_at, H6, delivery, "was acknowledged and is not ACKED")
        for ack in acks:
            _check_proof(ack, handouts.get(key, []), verdict)


def _check_proof(ack: Ack, leases: list[_Handout], verdict: Verdict) -> None:
    """H6: the proof is that of a lease which no later one had replaced, and no lease follows the acknowledgement."""
    given = [each for each in leases if each.leased.epoch == ack.epoch]
    if leases:
        matches = any(ack.proof is None or each.leased.proof in {None, ack.proof} for each in given)
        verdict.expect(matches, H6, ack.delivery, f"was acknowledged with a proof that epoch {ack.epoch} never had")
    for each in leases:
        replaced = each.leased.epoch > ack.epoch and each.claim.end is not None and each.claim.end < ack.begin
        if replaced and not ack.duplicate:
            verdict.refuse(H6, ack.delivery, f"epoch {ack.epoch} acknowledged, {each.leased.epoch} had replaced it")
        if ack.end is not None and each.claim.begin > ack.end:
            verdict.refuse(H6, ack.delivery, f"was delivered again after its acknowledgement at {ack.end.isoformat()}")
