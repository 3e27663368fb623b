"""The checker: every invariant over one history, in time that grows with its length (and one sort of it).

A total order of results exists by construction, the stream's, so no search for an order is needed: each invariant is a
walk. Operations without an end may or may not have happened; nothing is concluded from them. What an invariant needs
and the history does not hold is not checked, and `Verdict.checked` says so with a 0.
"""

from __future__ import annotations

from orbit.history.journal_checks import check_journal
from orbit.history.lease_checks import check_leases
from orbit.history.reading import History
from orbit.history.record_checks import check_records
from orbit.history.subscription_checks import check_subscriptions
from orbit.history.verdict import Verdict


def check_history(history: History) -> Verdict:
    """Return what the history keeps and what it breaks."""
    verdict = Verdict(lines=history.lines, open_operations=history.open_operations, aged=len(history.aged))
    check_journal(history, verdict)
    check_subscriptions(history, verdict)
    check_leases(history, verdict)
    check_records(history, verdict)
    return verdict
