"""What an exception in a consumer's transaction means for its delivery (RTY-01..03, REF-07)."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from seapost.database.sqlstates import driver_error, sqlstate_of
from seapost.model.errors import Reject, Retry, SwitchUnderWay
from seapost.model.outcome import NON_RETRYABLE_CODES, RETRYABLE_CODES, ErrorCode, NonRetryable, Outcome, Retryable


class NotOpened(Exception):
    """Signal: another library could not open the transaction; the cause is its error."""


UNREACHABLE: Final = (PoolTimeout, PoolClosed, TooManyRequests, NotOpened)
"""No connection was to be had: says nothing about any event, and trying the next one would wait as long."""

_TIMEOUTS: Final = frozenset({"57014", "55P03", "25P03", "25P04"})
_OVERLOADED: Final = "53"

_CODES: Final = {code.value: code for code in ErrorCode}


class HandlerFailed(Exception):
    """Signal: the handler of the event at `position` of the batch raised; the cause is the error."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__()


class TransactionLost(Exception):
    """Signal: a handler ended the transaction it was given, or swallowed the error that aborted it."""


def outcome_of(error: BaseException, reference: str) -> Outcome:
    """The outcome for an event whose own transaction failed with `error`.

    A `Retry` or `Reject` with a code of the other kind, or none we know, keeps its meaning under the
    kind's general code.
    """
    match error:
        case Retry():
            code = _CODES.get(error.code, ErrorCode.DEPENDENCY_UNAVAILABLE)
            wait = error.after_seconds if error.after_seconds is not None and error.after_seconds >= 0 else None
            retryable = code if code in RETRYABLE_CODES else ErrorCode.DEPENDENCY_UNAVAILABLE
            return Retryable(retryable, reference, wait)
        case Reject():
            code = _CODES.get(error.code, ErrorCode.VERSION_UNSUPPORTED)
            non_retryable = code if code in NON_RETRYABLE_CODES else ErrorCode.VERSION_UNSUPPORTED
            return NonRetryable(non_retryable, reference)
        case TooManyRequests() | SwitchUnderWay():
            return Retryable(ErrorCode.CAPACITY_PROTECTED, reference)
        case psycopg.Error():
            return Retryable(_database_code(error.sqlstate or ""), reference)
        case _:
            said = driver_error(error)
            return Retryable(_database_code("" if said is None else sqlstate_of(said) or ""), reference)


def _database_code(sqlstate: str) -> ErrorCode:
    if sqlstate in _TIMEOUTS:
        return ErrorCode.TIMEOUT
    if sqlstate.startswith(_OVERLOADED):
        return ErrorCode.CAPACITY_PROTECTED
    return ErrorCode.DEPENDENCY_UNAVAILABLE
