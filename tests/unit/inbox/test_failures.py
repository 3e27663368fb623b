"""What an exception means for its event: the class decides, never the text."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolTimeout, TooManyRequests

from seapost.inbox.failures import outcome_of
from seapost.model.errors import EventConflict, Reject, Retry
from seapost.model.outcome import ErrorCode, NonRetryable, Outcome, Retryable


@pytest.mark.req("RTY-01", "RTY-02", "RTY-03", "REF-07")
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Retry(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (Retry(after_seconds=3, code="fence_unbindable"), Retryable(ErrorCode.FENCE_UNBINDABLE, "r", 3)),
        (Retry(after_seconds=-3, code="nonsense"), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (Retry(after_seconds=float("nan")), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (Reject(), NonRetryable(ErrorCode.VERSION_UNSUPPORTED, "r")),
        (Reject(code="identity_conflict"), NonRetryable(ErrorCode.IDENTITY_CONFLICT, "r")),
        (Reject(code="policy_max_attempts"), NonRetryable(ErrorCode.VERSION_UNSUPPORTED, "r")),
        (errors.SerializationFailure(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (errors.DeadlockDetected(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (errors.QueryCanceled(), Retryable(ErrorCode.TIMEOUT, "r")),
        (errors.LockNotAvailable(), Retryable(ErrorCode.TIMEOUT, "r")),
        (errors.IdleInTransactionSessionTimeout(), Retryable(ErrorCode.TIMEOUT, "r")),
        (errors.TooManyConnections(), Retryable(ErrorCode.CAPACITY_PROTECTED, "r")),
        (TooManyRequests(), Retryable(ErrorCode.CAPACITY_PROTECTED, "r")),
        (PoolTimeout(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (psycopg.OperationalError("gone"), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (errors.UniqueViolation(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (EventConflict(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
        (ZeroDivisionError(), Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE, "r")),
    ],
)
def test_error_has_its_outcome(error: Exception, outcome: Outcome) -> None:
    """Each class of error has one outcome; only Reject is non_retryable, and no unknown code gets through."""
    assert outcome_of(error, "r") == outcome
