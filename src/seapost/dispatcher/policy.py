"""What an outcome means for a delivery: another try and when, or quarantine (RTY-01..04). Pure.

Authority: error codes decide, counts only where a maximum is configured (AMB-18).
States: none; every decision follows from the claim, the outcome and the settings.
Failures: none; rubbish from a peer (a negative, infinite or absent wish, a code of the wrong class) has a meaning.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from typing import Final

from seapost.dispatcher.settings import DestinationSettings
from seapost.model.delivery import Claim
from seapost.model.outcome import (
    NON_RETRYABLE_CODES,
    RETRYABLE_CODES,
    UNCOUNTED_CODES,
    ErrorCode,
    NonRetryable,
    Outcome,
    Retryable,
)

DOUBLINGS_MAX: Final = 62
WISH_JITTER: Final = 0.1

GIVEN_BACK: Final = Retryable(ErrorCode.WORKER_STOPPED)
"""The outcome of a delivery that this worker does not or no longer call for; says nothing about the event."""

_CONSUMER_CODES: Final = frozenset({ErrorCode.CAPACITY_PROTECTED, ErrorCode.ACK_INVALID})

_REFERENCE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Postpone:
    """Try again after `delay_seconds`; `counted` and `lost` as in `delivery_retry_v1`."""

    delay_seconds: float
    code: ErrorCode
    reference: str | None
    counted: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class Isolate:
    """Put the delivery into quarantine with this reason."""

    code: ErrorCode
    reference: str | None


def exhausted(settings: DestinationSettings, claim: Claim) -> bool:
    """Whether the delivery has used up its counted failures already, by recovery or a lower maximum (F20)."""
    return settings.max_attempts is not None and claim.failure_count >= settings.max_attempts


def accuses_consumer(outcome: Outcome) -> bool:
    """Whether the outcome speaks of the consumer or the way to it; a call of nothing else failed as a whole (F29).

    A handler that wants an event again later speaks of that event: many of them are no outage, and others must not
    wait for it.
    """
    return isinstance(outcome, Retryable) and not (
        outcome.answered and outcome.reached and outcome.code not in _CONSUMER_CODES
    )


def decide(
    settings: DestinationSettings, claim: Claim, outcome: Retryable | NonRetryable, rng: random.Random
) -> Postpone | Isolate:
    """The next step of a delivery that was not acknowledged."""
    reference = _reference(outcome.reference)
    if isinstance(outcome, NonRetryable):
        if outcome.code in NON_RETRYABLE_CODES or outcome.code is ErrorCode.POLICY_MAX_ATTEMPTS:
            return Isolate(outcome.code, reference)
        # A code that cannot condemn an event accuses the answer instead (REF-07).
        outcome = Retryable(ErrorCode.ACK_INVALID)
    code = outcome.code if outcome.code in RETRYABLE_CODES else ErrorCode.DEPENDENCY_UNAVAILABLE
    if code is ErrorCode.WORKER_STOPPED:
        # An orderly stop costs nothing, and clears no suspect either: else it would return to a full batch (F20).
        return Postpone(0.0, code, reference, counted=False, lost=claim.lost_count > 0)
    counted = code not in UNCOUNTED_CODES
    lost = not outcome.answered
    if not outcome.reached and claim.lost_count > 0:
        # While the consumer is away, perhaps killed by one of them, no suspect clears or exhausts itself (F20).
        counted, lost = False, True
    # The database counts an unanswered end only for a delivery that was claimed alone; so do we.
    counts_now = counted and (not lost or claim.company == 1)
    if settings.max_attempts is not None and counts_now and claim.failure_count + 1 >= settings.max_attempts:
        return Isolate(ErrorCode.POLICY_MAX_ATTEMPTS, reference)
    # What is not counted still waits longer each time: nobody should ask for a missing revision every second.
    failures = max(claim.failure_count, claim.lost_count) if counted else claim.attempt_number - 1
    delay = delay_seconds(settings, failures, outcome.retry_after_seconds, rng)
    return Postpone(delay, code, reference, counted, lost)


def delay_seconds(
    settings: DestinationSettings, failures: int, retry_after_seconds: float | None, rng: random.Random
) -> float:
    """Delay of the next try: the longer of our own backoff and the consumer's wish, within the limits (F26).

    Our own is full jitter, anything up to the doubled ceiling. A wish is honoured up to a tenth late, and just below
    `retry_after_max_seconds` where it reaches further, so that deliveries never come back in step (F29).

    Args:
        failures: failures before this one, any size.
        retry_after_seconds: the consumer's wish; negative and not-a-number are ignored.
    """
    doublings = min(max(failures, 0), DOUBLINGS_MAX)
    ceiling = min(settings.backoff_max_seconds, settings.backoff_base_seconds * 2.0**doublings)
    delay = rng.uniform(0.0, ceiling)
    if retry_after_seconds is not None and not math.isnan(retry_after_seconds) and retry_after_seconds >= 0:
        most = settings.retry_after_max_seconds
        wish = min(retry_after_seconds, most) * rng.uniform(1.0, 1.0 + WISH_JITTER)
        delay = max(delay, wish if wish <= most else most * rng.uniform(1.0 - WISH_JITTER, 1.0))
    return max(delay, settings.backoff_min_seconds)


def _reference(reference: str | None) -> str | None:
    """An opaque id, or nothing: what a peer sends is neither stored nor logged otherwise (SEC-17)."""
    if isinstance(reference, str) and _REFERENCE.fullmatch(reference) is not None:
        return reference
    return None
