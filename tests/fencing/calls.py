"""The fenced verbs as typed SQL calls, and what each answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from seapost.model.delivery import Claim
from tests.kit import builders

Rows = list[tuple[Any, ...]]
LONG: Final = timedelta(hours=12)
FENCE_TYPES: Final = ("text", "uuid[]", "bigint[]", "uuid[]")


class Verb(StrEnum):
    """What a worker may say of a delivery that it believes to hold."""

    ACKNOWLEDGE = "acknowledge"
    RETRY = "retry"
    QUARANTINE = "quarantine"
    RENEW = "renew"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `seapost.delivery_{verb}_v1` with the types and values of its arguments."""

    verb: Verb
    types: tuple[str, ...]
    values: tuple[Any, ...]

    @property
    def function(self) -> str:
        """The name of the SQL function."""
        return f"seapost.delivery_{self.verb}_v1"

    def text(self, placeholder: Callable[[int], str]) -> str:
        """The statement, with a driver's own placeholders, counted from 0."""
        parameters = ", ".join(f"cast({placeholder(number)} as {name})" for number, name in enumerate(self.types))
        return f"select * from {self.function}({parameters})"  # noqa: S608 - names of our own


def call_of(verb: Verb, destination: str, claims: Sequence[Claim]) -> Call:
    """The call in which a worker says this of these claims; each receipt is the right one for its event."""
    size = len(claims)
    fences = (
        destination,
        [claim.fence.event_id for claim in claims],
        [claim.fence.attempt_id for claim in claims],
        [claim.fence.token for claim in claims],
    )
    match verb:
        case Verb.ACKNOWLEDGE:
            types = ("bytea[]", "text", "text", "text", "text[]", "bytea[]")
            values: tuple[Any, ...] = (
                [claim.event_digest for claim in claims],
                "ConsumerReceipt",
                "1",
                "jcs-sha256-v1",
                [f"receipt-{claim.fence.event_id}" for claim in claims],
                [builders.receipt_for(claim) for claim in claims],
            )
        case Verb.RETRY:
            types = ("interval[]", "text[]", "text[]", "boolean[]", "boolean[]")
            values = ([LONG] * size, ["timeout"] * size, ["note"] * size, [True] * size, [False] * size)
        case Verb.QUARANTINE:
            types = ("text[]", "text[]")
            values = (["schema_invalid"] * size, ["note"] * size)
        case Verb.RENEW:
            types = ("interval",)
            values = (LONG,)
    return Call(verb, (*FENCE_TYPES, *types), (*fences, *values))


def accepted(verb: Verb, claims: Sequence[Claim], rows: Rows) -> list[Claim]:
    """The claims that the answer does not refuse."""
    if verb is Verb.RENEW:
        renewed = {row[0] for row in rows}
        return [claim for claim in claims if claim.fence.event_id in renewed]
    refused = {(row[0], row[1]) for row in rows}
    return [claim for claim in claims if (claim.fence.event_id, claim.fence.attempt_id) not in refused]
