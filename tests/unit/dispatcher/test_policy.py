"""What an outcome leads to: a delay within its limits, or quarantine; never an exception."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seapost.dispatcher import policy
from seapost.dispatcher.policy import Isolate, Postpone
from seapost.dispatcher.settings import DestinationSettings
from seapost.model.delivery import Claim
from seapost.model.outcome import (
    NON_RETRYABLE_CODES,
    RETRYABLE_CODES,
    UNCOUNTED_CODES,
    Acknowledged,
    ErrorCode,
    NonRetryable,
    Outcome,
    Retryable,
)
from tests.kit import contracts

SETTINGS = DestinationSettings(
    name="billing", backoff_min_seconds=0.5, backoff_base_seconds=1.0, backoff_max_seconds=60.0
)
LIMITED = replace(SETTINGS, max_attempts=5)
CLAIM = contracts.claim()


def _claim(*, attempt_number: int = 1, failure_count: int = 0, lost_count: int = 0, company: int = 1) -> Claim:
    return replace(
        CLAIM, attempt_number=attempt_number, failure_count=failure_count, lost_count=lost_count, company=company
    )


def _decide(settings: DestinationSettings, claim: Claim, outcome: Retryable | NonRetryable) -> Postpone | Isolate:
    return policy.decide(settings, claim, outcome, random.Random(1))


@pytest.mark.req("F26")
@pytest.mark.parametrize("failures", [0, 1, 64, 1_100, 100_000, 2**63])
@pytest.mark.parametrize("wish", [None, 0.0, -5.0, 120.0, 9_999_999_999.0, float("inf"), float("nan")])
def test_a_delay_stays_within_its_limits(failures: int, wish: float | None) -> None:
    """No number of failures and no wish leads to an overflow, a delay below the minimum or one beyond the cap."""
    for seed in range(50):
        delay = policy.delay_seconds(SETTINGS, failures, wish, random.Random(seed))
        cap = SETTINGS.retry_after_max_seconds if wish and wish > 60 else SETTINGS.backoff_max_seconds
        assert SETTINGS.backoff_min_seconds <= delay <= cap


@given(
    failures=st.integers(-5, 10**9),
    wish=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    seed=st.integers(0, 2**32),
)
def test_any_delay_is_legal(failures: int, wish: float | None, seed: int) -> None:
    """Whatever comes in, the delay is between the minimum and the larger cap."""
    delay = policy.delay_seconds(SETTINGS, failures, wish, random.Random(seed))
    assert SETTINGS.backoff_min_seconds <= delay <= SETTINGS.retry_after_max_seconds


@pytest.mark.req("F26")
def test_a_valid_wish_is_honoured() -> None:
    """A consumer that asks for 120 seconds is not called sooner, and not a tenth later than that."""
    delays = [policy.delay_seconds(SETTINGS, 0, 120.0, random.Random(seed)) for seed in range(100)]
    assert all(120.0 <= delay <= 132.0 for delay in delays)


@pytest.mark.req("F29")
@pytest.mark.parametrize(("failures", "wish"), [(100, None), (0, 10.0**10)])
def test_delays_spread_at_the_cap(failures: int, wish: float | None) -> None:
    """Deliveries that wait as long as allowed do not come back in step."""
    delays = {round(policy.delay_seconds(SETTINGS, failures, wish, random.Random(seed)), 3) for seed in range(100)}
    assert len(delays) > 80


@pytest.mark.req("DLV-04", "RTY-01")
def test_an_answered_failure_is_counted_and_not_lost() -> None:
    """A consumer's own refusal counts towards a maximum and makes no suspect."""
    decision = _decide(SETTINGS, _claim(company=10), Retryable(ErrorCode.CAPACITY_PROTECTED, "ref-1"))
    assert isinstance(decision, Postpone)
    assert (decision.code, decision.reference) == (ErrorCode.CAPACITY_PROTECTED, "ref-1")
    assert (decision.counted, decision.lost) == (True, False)


def test_an_unanswered_failure_is_lost() -> None:
    """A call that ended without an answer makes its deliveries suspects."""
    decision = _decide(SETTINGS, _claim(company=10), Retryable(ErrorCode.TIMEOUT, answered=False))
    assert isinstance(decision, Postpone)
    assert decision.lost


@pytest.mark.req("AMB-18", "RTY-04")
@pytest.mark.parametrize("code", sorted(RETRYABLE_CODES))
def test_only_counted_codes_exhaust_a_maximum(code: ErrorCode) -> None:
    """The fifth counted failure of five is quarantined; waiting for what must come is not, however often."""
    decision = _decide(LIMITED, _claim(attempt_number=5_000, failure_count=4), Retryable(code))
    if code in UNCOUNTED_CODES:
        assert isinstance(decision, Postpone)
        assert not decision.counted
    else:
        assert decision == Isolate(ErrorCode.POLICY_MAX_ATTEMPTS, None)


@pytest.mark.req("AMB-18")
@pytest.mark.parametrize("code", sorted(RETRYABLE_CODES))
def test_without_a_maximum_nothing_is_quarantined_for_its_count(code: ErrorCode) -> None:
    """Unset, the maximum never decides."""
    claim = _claim(attempt_number=100_000, failure_count=100_000)
    assert isinstance(_decide(SETTINGS, claim, Retryable(code)), Postpone)
    assert not policy.exhausted(SETTINGS, claim)


@pytest.mark.req("F20")
def test_a_lost_call_exhausts_only_what_was_alone() -> None:
    """Neighbours of a poison event are not quarantined for having been in its batch."""
    outcome = Retryable(ErrorCode.TIMEOUT, answered=False)
    assert isinstance(_decide(LIMITED, _claim(failure_count=4, company=2), outcome), Postpone)
    assert isinstance(_decide(LIMITED, _claim(failure_count=4, company=1), outcome), Isolate)


@pytest.mark.req("F20")
def test_a_claim_that_is_exhausted_is_known_before_the_call() -> None:
    """Failures counted by recovery reach the maximum without any settle."""
    assert policy.exhausted(LIMITED, _claim(failure_count=5))
    assert not policy.exhausted(LIMITED, _claim(failure_count=4))


@pytest.mark.req("DLV-05", "RTY-03")
@pytest.mark.parametrize("code", sorted(NON_RETRYABLE_CODES))
def test_a_non_retryable_outcome_is_isolated_at_once(code: ErrorCode) -> None:
    """What can never be processed is not retried blindly."""
    assert _decide(SETTINGS, _claim(), NonRetryable(code, "ref_2")) == Isolate(code, "ref_2")


@pytest.mark.parametrize("code", sorted(RETRYABLE_CODES | {ErrorCode.LEASE_EXPIRED, ErrorCode.BOOTSTRAP_UNPARSABLE}))
def test_a_code_that_cannot_condemn_an_event_does_not(code: ErrorCode) -> None:
    """A non-retryable answer with a code of another class is an invalid acknowledgement, not a quarantine."""
    decision = _decide(SETTINGS, _claim(), NonRetryable(code))
    assert isinstance(decision, Postpone)
    assert decision.code is ErrorCode.ACK_INVALID


def test_a_retryable_outcome_with_a_foreign_code_is_still_a_retry() -> None:
    """A transport that invents a code cannot make the settle call fail."""
    decision = _decide(SETTINGS, _claim(), Retryable(ErrorCode.SCHEMA_INVALID))
    assert isinstance(decision, Postpone)
    assert decision.code is ErrorCode.DEPENDENCY_UNAVAILABLE


@pytest.mark.req("F16")
def test_what_is_given_back_costs_nothing() -> None:
    """A stopped worker postpones by nothing, counts nothing and suspects nobody."""
    decision = _decide(LIMITED, _claim(failure_count=4), policy.GIVEN_BACK)
    assert decision == Postpone(0.0, ErrorCode.WORKER_STOPPED, None, counted=False, lost=False)


@pytest.mark.req("F16", "F20")
def test_a_suspect_that_is_given_back_stays_a_suspect() -> None:
    """A restart does not put an event that kills its consumer back among the others."""
    decision = _decide(LIMITED, _claim(failure_count=4, lost_count=2), policy.GIVEN_BACK)
    assert decision == Postpone(0.0, ErrorCode.WORKER_STOPPED, None, counted=False, lost=True)


@pytest.mark.req("F20")
def test_a_suspect_whose_call_never_reached_the_consumer_stays_one_and_counts_nothing() -> None:
    """While a consumer that was killed is away, neither the poison clears itself nor do its neighbours run out."""
    outcome = Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, reached=False)
    decision = _decide(LIMITED, _claim(failure_count=4, lost_count=2, company=1), outcome)
    assert isinstance(decision, Postpone)
    assert (decision.counted, decision.lost) == (False, True)
    assert isinstance(_decide(LIMITED, _claim(failure_count=4, company=1), outcome), Isolate)


@pytest.mark.req("SEC-17")
@pytest.mark.parametrize("reference", ["", "a b", "x" * 65, "ü", "a\nb", "'; drop"])
def test_a_reference_that_is_no_opaque_id_is_dropped(reference: str) -> None:
    """What a peer sends as a reference is stored only when it can hold nothing."""
    decision = _decide(SETTINGS, _claim(), Retryable(ErrorCode.TIMEOUT, reference))
    assert decision.reference is None


@pytest.mark.req("F29")
@pytest.mark.parametrize(
    ("outcome", "accuses"),
    [
        (Acknowledged(b"{}", b"{}"), False),
        (NonRetryable(ErrorCode.SCHEMA_UNKNOWN), False),
        (Retryable(ErrorCode.REVISION_GAP), False),
        (Retryable(ErrorCode.REVISION_GAP, answered=False), True),
        (Retryable(ErrorCode.CAPACITY_PROTECTED), True),
        (Retryable(ErrorCode.ACK_INVALID), True),
        (Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE), False),
        (Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, reached=False), True),
        (Retryable(ErrorCode.TIMEOUT), False),
        (Retryable(ErrorCode.TIMEOUT, answered=False), True),
    ],
)
def test_which_outcomes_accuse_the_consumer(outcome: Outcome, *, accuses: bool) -> None:
    """Only what speaks of the consumer or the way to it can open the breaker."""
    assert policy.accuses_consumer(outcome) is accuses
