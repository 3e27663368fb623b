"""Every error OceanWay raises on purpose, and the SQLSTATEs of class `OW` behind them.

The docstring of a class is its default message. The owners' SQL functions raise these codes; `translating` turns
them into the classes, so that no caller ever reads the text of a database error.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

from seapost.model.errors import SeapostError

if TYPE_CHECKING:
    from collections.abc import Generator


class OceanWayError(SeapostError):
    """OceanWay could not do what was asked.

    `code` is the SQLSTATE of class `OW`; the kernel's own registry reads only `sqlstate` and knows only class `SP`.
    """

    code: ClassVar[str] = ""


class OwnerConflict(OceanWayError):
    """The owner already holds other content under this identity."""

    code = "OW001"


class Stale(OceanWayError):
    """The revision or fencing token is no longer current; read the state and decide again."""

    code = "OW002"


class InvalidArgument(OceanWayError):
    """An argument of an owner's function breaks its rule."""

    code = "OW003"


class NotFound(OceanWayError):
    """The owner does not know this, or cannot bind it yet."""

    code = "OW004"


class AlreadyClosed(OceanWayError):
    """This has ended for good: it cannot be closed, finished or finalized a second time."""

    code = "OW005"


class GateClosed(OceanWayError):
    """The feature gate of this command or producer is closed (REF-43)."""

    code = "OW006"


class GrantConsumed(OceanWayError):
    """The grant was consumed by another command (SEC-15)."""

    code = "OW007"


class NotCovered(OceanWayError):
    """What the account covers is no longer what the decision was based on; decide again."""

    code = "OW008"


class Incomplete(OceanWayError):
    """A mandatory part of the set is missing."""

    code = "OW009"


BY_SQLSTATE: Final[dict[str, type[OceanWayError]]] = {
    error.code: error
    for error in (
        OwnerConflict,
        Stale,
        InvalidArgument,
        NotFound,
        AlreadyClosed,
        GateClosed,
        GrantConsumed,
        NotCovered,
        Incomplete,
    )
}
"""The closed registry: one class for each code."""


def from_sqlstate(error: Exception) -> OceanWayError | None:
    """The OceanWay error behind a database error, or None when the database means something else."""
    known = BY_SQLSTATE.get(getattr(error, "sqlstate", None) or "")
    if known is None:
        return None
    diagnostics = getattr(error, "diag", None)
    message: str | None = getattr(diagnostics, "message_primary", None)
    detail: str | None = getattr(diagnostics, "message_detail", None)
    return known(message, detail=detail)


@contextmanager
def translating() -> Generator[None]:
    """Raise database errors of class `OW` as the exceptions of this module."""
    try:
        yield
    except OceanWayError:
        raise
    except Exception as error:
        known = from_sqlstate(error)
        if known is None:
            raise
        raise known from error
