"""How a connection ends: a last frame, if any, and a close code (section 16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.ws import writing

BINARY_FRAME: Final = 1003
NO_HELLO: Final = 4408


@dataclass(frozen=True, slots=True)
class Ending:
    """What the client is told last.

    Attributes:
        code: close code; None when nobody is there to be told.
        reason: short text of the close frame.
        frame: the fatal `error` that comes before it.
    """

    code: int | None
    reason: str = ""
    frame: str | None = None


class Ended(Exception):
    """The connection cannot go on."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        super().__init__(ending.reason)


LEFT: Final = Ending(None)


def ending_of(error: OrbitError, request_id: str | None) -> Ending:
    """The end that an error brings; one that closes nothing by the table has no place here and is a defect."""
    code = error.facts.close
    if code is None:
        return defect(request_id)
    return Ending(code, error.code, writing.error(request_id, error, fatal=True))


def defect(request_id: str | None = None) -> Ending:
    """Something failed that should not: no inner detail leaves the server."""
    return ending_of(OrbitError(ErrorCode.INTERNAL), request_id)
