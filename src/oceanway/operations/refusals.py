"""How the projector refuses an event that contradicts what is known: for good, as `identity_conflict`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from oceanway.contracts.errors import OwnerConflict
from seapost.model.errors import Reject
from seapost.model.outcome import ErrorCode


def refuse(reason: str) -> Reject:
    """The outcome of an event that contradicts its owner or what is known."""
    return Reject(reason, code=ErrorCode.IDENTITY_CONFLICT)


@contextmanager
def refusing() -> Generator[None]:
    """Turn a contradiction that the database found into that outcome."""
    try:
        yield
    except OwnerConflict as conflict:
        raise refuse(str(conflict)) from conflict
