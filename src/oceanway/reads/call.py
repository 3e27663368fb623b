"""One call of an owner read on the wire: many items out, as many answers back in the same order.

Each item carries its own token, whose bindings are the leaves of its arguments by JSON pointer, so that a token
repeats its item field by field and fits no other one (REF-11). Arguments and answers travel as strings that hold
their exact canonical text; nobody on the way can spell them differently.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from pydantic import Field, ValidationError

from oceanway.contracts.base import Contract
from oceanway.contracts.reads import ReadOperation
from seapost.contracts.canonical import Limits, parse
from seapost.contracts.contract import refusal
from seapost.contracts.examination import escape
from seapost.model.errors import ContractError
from seapost.transport.token import TOKEN_LENGTH_MAX, Bindings, TokenSigner

if TYPE_CHECKING:
    from seapost.contracts.examination import JSONValue

PROTOCOL: Final = "oceanway.read.v1"
PATH: Final = "/oceanway/v1/reads"
MEDIA_TYPE: Final = "application/json"
SCOPE: Final = "oceanway.read"

ITEMS_MAX: Final = 500
ARGUMENTS_CHARACTERS_MAX: Final = 65_536
ANSWER_CHARACTERS_MAX: Final = 1_048_576
REQUEST_BYTES_MAX: Final = 8_388_608
RESPONSE_BYTES_MAX: Final = 67_108_864

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)


class ReadItem(Contract):
    """One question and the token that allows exactly it."""

    token: Annotated[str, Field(min_length=1, max_length=TOKEN_LENGTH_MAX)]
    arguments: Annotated[str, Field(max_length=ARGUMENTS_CHARACTERS_MAX)]


class ReadRequest(Contract):
    """The body of a call."""

    protocol: Literal["oceanway.read.v1"]
    purpose: Annotated[str, Field(min_length=1, max_length=200)]
    items: Annotated[tuple[ReadItem, ...], Field(min_length=1, max_length=ITEMS_MAX)]


class ReadResponse(Contract):
    """The body of a 200 response: one answer for each item, in order."""

    protocol: Literal["oceanway.read.v1"]
    answers: Annotated[tuple[Annotated[str, Field(max_length=ANSWER_CHARACTERS_MAX)], ...], Field(max_length=ITEMS_MAX)]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as an authentic token says; the bindings of each item equal its arguments."""

    workload: str
    bindings: tuple[Bindings, ...]


def bindings_of(arguments: Contract) -> dict[str, str | int]:
    """Every leaf of the arguments by its JSON pointer; an empty structure and a truth value bind by their JSON text."""
    found: dict[str, str | int] = {}
    _collect("", arguments.to_json(), found)
    return found


def _collect(pointer: str, value: JSONValue, found: dict[str, str | int]) -> None:
    match value:
        case dict() if value:
            for name, below in value.items():
                _collect(f"{pointer}/{escape(name)}", below, found)
        case list() if value:
            for position, below in enumerate(value):
                _collect(f"{pointer}/{position}", below, found)
        case str():
            found[pointer] = value
        case int() if not isinstance(value, bool):
            found[pointer] = value
        case _:
            found[pointer] = json.dumps(value)


def encode_request(operation: ReadOperation[A, R], arguments: Sequence[A], signer: TokenSigner) -> bytes:
    """The body that asks an owner for these arguments, each with a token of its own."""
    items = [
        {
            "token": signer.mint(
                audience=operation.audience, scope=SCOPE, purpose=operation.purpose, bindings=bindings_of(one)
            ),
            "arguments": one.canonical().decode(),
        }
        for one in arguments
    ]
    return _dump({"protocol": PROTOCOL, "purpose": operation.purpose, "items": items})


def decode_request(body: bytes) -> ReadRequest:
    """Read the body of a call; raise `ContractError` with the place of the first problem."""
    value = parse(body, limits=_limits(REQUEST_BYTES_MAX, ARGUMENTS_CHARACTERS_MAX))
    try:
        return ReadRequest.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise refusal(error, value) from None


def encode_response(answers: Sequence[bytes]) -> bytes:
    """The body of the answer, from each answer's canonical text."""
    return _dump({"protocol": PROTOCOL, "answers": [answer.decode() for answer in answers]})


def decode_response(operation: ReadOperation[A, R], body: bytes, count: int) -> list[R]:
    """Read the answers to `count` items.

    Raises:
        ContractError: the body is no answer to this call, or an answer breaks the operation's contract.
    """
    value = parse(body, limits=_limits(RESPONSE_BYTES_MAX, ANSWER_CHARACTERS_MAX))
    try:
        response = ReadResponse.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise refusal(error, value) from None
    if len(response.answers) != count:
        message = f"The response has {len(response.answers)} answers for {count} items"
        raise ContractError(message, pointer="/answers", rule="count")
    return [operation.answer.decode(answer) for answer in response.answers]


def _limits(bytes_max: int, string_max: int) -> Limits:
    return Limits(bytes_max=bytes_max, depth_max=4, items_max=4 * ITEMS_MAX, string_max=string_max)


def _dump(document: dict[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, check_circular=False, separators=(",", ":")).encode()
