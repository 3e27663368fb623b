"""Which errors of the database pass by themselves, and how long to wait before asking again."""

from __future__ import annotations

import random

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolTimeout

from seapost.dispatcher.session import BACKOFF_MAX_SECONDS, BACKOFF_MIN_SECONDS, backoff_seconds, is_transient
from seapost.model.errors import DeliveryMovedTwice


@pytest.mark.req("F18", "F81")
@pytest.mark.parametrize(
    "error",
    [
        errors.DeadlockDetected(),
        errors.SerializationFailure(),
        errors.LockNotAvailable(),
        errors.QueryCanceled(),
        errors.AdminShutdown(),
        errors.CrashShutdown(),
        errors.CannotConnectNow(),
        errors.ConnectionFailure(),
        errors.TooManyConnections(),
        errors.ReadOnlySqlTransaction(),
        psycopg.OperationalError("the connection is closed"),
        PoolTimeout(),
        TimeoutError(),
        ConnectionResetError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_passes_by_itself_is_tried_again(error: Exception) -> None:
    """Deadlocks, time limits, lost connections and servers that start or stop are transient."""
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        errors.InsufficientPrivilege(),
        errors.UndefinedFunction(),
        errors.InvalidTextRepresentation(),
        errors.CheckViolation(),
        DeliveryMovedTwice(),
        ValueError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_does_not_pass_is_not(error: Exception) -> None:
    """Missing rights, missing functions, bad content and defects are not tried again and again."""
    assert not is_transient(error)


def test_the_backoff_is_bounded_and_jittered() -> None:
    """Any number of failures gives a wait between the limits, and processes do not come back in step."""
    waits = [backoff_seconds(failures, random.Random(failures)) for failures in (0, 1, 5, 64, 100_000)]
    assert all(BACKOFF_MIN_SECONDS <= wait <= BACKOFF_MAX_SECONDS for wait in waits)
    assert len({backoff_seconds(20, random.Random(seed)) for seed in range(50)}) > 40
