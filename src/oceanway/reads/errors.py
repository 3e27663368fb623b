"""What a caller of an owner read may meet instead of answers."""

from __future__ import annotations

from seapost.model.errors import Retry
from seapost.model.outcome import ErrorCode


class OwnerUnreadable(Retry):
    """The owner could not be read; what needs the answer is done again later (AMB-35).

    As a `Retry` of the kernel it ends a delivery as retryable with the code `owner_unreadable`, which never counts
    towards a configured maximum of attempts (AMB-18).

    Attributes:
        owner: whom the read asked.
        operation: wire name of the read.
    """

    def __init__(self, owner: str, operation: str, reason: str) -> None:
        self.owner = owner
        self.operation = operation
        super().__init__(f"{owner} could not be read by {operation}: {reason}", code=ErrorCode.OWNER_UNREADABLE)


class ReadRefused(OwnerUnreadable):
    """The owner refused the call itself: its token, its form or its operation; the reason names the broken rule."""


class CallRefused(Exception):
    """On the owner's side: a call that gets no answers.

    Attributes:
        status: HTTP status.
        problem: name of the problem, one of `seapost.server.problems.TITLES`.
        reason: the broken rule in words, without any value of the call.
    """

    def __init__(self, status: int, problem: str, reason: str) -> None:
        self.status = status
        self.problem = problem
        self.reason = reason
        super().__init__(reason)
