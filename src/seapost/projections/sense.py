"""Whether a view makes sense: what its author can say about it that no count can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from psycopg import Connection


class Sense(NamedTuple):
    """What a semantic check found.

    Attributes:
        passed: whether the view makes sense.
        digest: SHA-256 of what was looked at, in hexadecimal; the same view gives the same digest.
    """

    passed: bool
    digest: str


class SemanticCheck(Protocol):
    """Looks at the view in one snapshot and changes nothing; a function, known by its module and name (ORD-05)."""

    __module__: str
    __qualname__: str

    def __call__(self, connection: Connection[Any], /) -> Sense:
        """Look."""
        ...
