"""An owner with one small fact and its two questions, to test the reads themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.reads import ReadOperation
from oceanway.reads.call import Caller
from oceanway.reads.server import Serving
from tests.kit.oceanway.reading import new_serving

OWNER: Final = "harbour"
CALLER: Final = "work.pilot"
PURPOSE: Final = "pilotage"


class Draught(Contract):
    """A part of the arguments, to have leaves below the first level."""

    metres: int
    mark: str


class ShipQuestion(Contract):
    """The complete identity of one ship."""

    ship_ref: str
    ship_digest: str
    state_version: int
    draught: Draught
    flags: tuple[str, ...] = ()


class ShipFound(Contract):
    """The ship is there."""

    result: Literal["found"] = "found"
    ship_ref: str


class ShipNotFound(Contract):
    """There is no such ship."""

    result: Literal["not_found"] = "not_found"


class ShipAnswer(Contract):
    """What the harbour answers."""

    answer: Annotated[ShipFound | ShipNotFound, Field(discriminator="result")]


READ_SHIP: Final = ReadOperation(
    "readShip", OWNER, PURPOSE, arguments=ShipQuestion, answer=ShipAnswer, callers=frozenset({CALLER})
)
INSPECT_SHIP: Final = ReadOperation(
    "readShip", OWNER, "inspection", arguments=ShipQuestion, answer=ShipAnswer, callers=frozenset({"work.inspector"})
)


def question(**changes: object) -> ShipQuestion:
    """Make a question about the ship `Ahto`, or another one."""
    fields: dict[str, object] = {
        "ship_ref": "Ahto",
        "ship_digest": "d" * 64,
        "state_version": 7,
        "draught": Draught(metres=9, mark="summer"),
        "flags": ("EE", "FI"),
    }
    return ShipQuestion(**{**fields, **changes})  # pyright: ignore[reportArgumentType]


def answer_of(asked: ShipQuestion) -> ShipAnswer:
    """What the harbour says: it knows every ship that is not called `Ghost`."""
    return ShipAnswer(answer=ShipNotFound() if asked.ship_ref == "Ghost" else ShipFound(ship_ref=asked.ship_ref))


class Harbour:
    """The owner; it remembers who asked what."""

    def __init__(self) -> None:
        self.asked: list[tuple[Caller, list[ShipQuestion]]] = []
        self.failure: Exception | None = None
        self.before: Callable[[], None] = lambda: None
        self.serving: Serving = new_serving(OWNER)
        self.serving.register(READ_SHIP, self.read)

    def read(self, caller: Caller, arguments: Sequence[ShipQuestion]) -> list[ShipAnswer | bytes]:
        """Answer each second one as stored bytes, as an owner with documents does."""
        self.before()
        if self.failure is not None:
            raise self.failure
        self.asked.append((caller, list(arguments)))
        answers = [answer_of(one) for one in arguments]
        return [one.canonical() if at % 2 else one for at, one in enumerate(answers)]
