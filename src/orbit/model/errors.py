"""The one exception of Orbit's server: a code of the specification, a sentence, and members for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbit.model.codes import CODES, CodeFacts, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class OrbitError(Exception):
    """A request, a frame or a command was refused.

    Attributes:
        code: what programs decide on.
        detail: one sentence for a person, without secrets.
        extensions: members of the problem, for instance `current_revision` (API-05).
    """

    def __init__(self, code: ErrorCode, detail: str | None = None, **extensions: object) -> None:
        self.code = code
        self.detail = detail or CODES[code].title
        self.extensions: Mapping[str, object] = extensions
        super().__init__(f"{code}: {self.detail}")

    @property
    def facts(self) -> CodeFacts:
        """What HTTP and the WebSocket say to this code."""
        return CODES[self.code]
