"""Asking another owner: the protocol every room is written against, and the reader without a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from oceanway.contracts.base import Contract
from oceanway.contracts.reads import ReadOperation
from oceanway.reads.call import ITEMS_MAX, decode_response, encode_request
from oceanway.reads.errors import CallRefused, OwnerUnreadable, ReadRefused
from oceanway.reads.server import Serving
from seapost.model.errors import ContractError, InvalidSetting
from seapost.telemetry.logging import get_logger
from seapost.transport.token import TokenSigner

__all__ = ["LocalReader", "OwnerUnreadable", "ReadRefused", "Reader"]

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)

_log = get_logger("oceanway.reads.client")


class Reader(Protocol):
    """Asks owners; safe to use from several threads."""

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """One answer for each of the arguments, in order; nothing is asked for none.

        Raises:
            OwnerUnreadable: there are no answers now; nothing is known about any of the arguments.
            ReadRefused: the owner refuses the call itself.
        """
        ...


class LocalReader:
    """Asks owners in this process, with the same tokens, bytes and checks as over a network.

    Args:
        servings: the owners that can be asked.
        signer: the caller's identity.
    """

    def __init__(self, servings: Iterable[Serving], *, signer: TokenSigner) -> None:
        self._servings = {serving.owner: serving for serving in servings}
        self._signer = signer

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """See `Reader`."""
        serving = self._servings.get(operation.audience)
        if serving is None:
            raise InvalidSetting(f"Nothing says how to read {operation.audience}.")
        return [answer for part in parts_of(arguments) for answer in _ask(serving, operation, part, self._signer)]


def _ask(serving: Serving, operation: ReadOperation[A, R], arguments: Sequence[A], signer: TokenSigner) -> list[R]:
    owner, name = operation.audience, operation.name
    body = encode_request(operation, arguments, signer)
    try:
        answer = serving.answer(name, body)
    except CallRefused as refused:
        raise ReadRefused(owner, name, refused.reason) from None
    except Exception as error:
        _log.warning("read_failed", owner=owner, operation=name, exc_info=error)
        raise OwnerUnreadable(owner, name, "the owner failed") from error
    return answers_of(operation, answer, len(arguments))


def answers_of(operation: ReadOperation[A, R], body: bytes, count: int) -> list[R]:
    """The answers in a response; one that breaks its contract is as good as none."""
    try:
        return decode_response(operation, body, count)
    except ContractError as error:
        reason = f"its answer breaks the contract: {error}"
        raise OwnerUnreadable(operation.audience, operation.name, reason) from None


def parts_of(arguments: Sequence[A], size: int = ITEMS_MAX) -> Iterable[list[A]]:
    """The arguments in calls of at most `size` items."""
    rest = iter(arguments)
    while part := list(islice(rest, size)):
        yield part
