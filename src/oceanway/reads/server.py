"""The owner's side of its reads: a closed list of operations, and what a call must show before one is asked.

Order of checks: the operation exists under this name and purpose; the caller's token is authentic; it names this
audience, scope and purpose; its bindings are the arguments, field by field; its workload is one of the operation's
callers. Only then is the database asked. There is no list, no latest and no administrative read (SEC-08).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from oceanway.contracts.base import Contract
from oceanway.contracts.reads import ReadOperation
from oceanway.reads.call import SCOPE, Caller, ReadItem, bindings_of, decode_request, encode_response
from oceanway.reads.errors import CallRefused
from seapost.model.errors import ContractError, InvalidSetting, InvalidToken
from seapost.transport.token import TokenVerifier

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)

ReadFunction = Callable[[Caller, Sequence[A]], Sequence[R | bytes]]
"""Answers a batch in order; an answer is the contract, or its canonical text put together from stored bytes."""

_Registered = tuple[ReadOperation[Any, Any], ReadFunction[Any, Any]]


class Serving:
    """The reads of one owner.

    Args:
        owner: the audience of every operation registered here.
        verifier: checks the tokens of callers.
    """

    def __init__(self, owner: str, *, verifier: TokenVerifier) -> None:
        self.owner = owner
        self._verifier = verifier
        self._registered: dict[str, dict[str, _Registered]] = {}

    @property
    def operations(self) -> tuple[ReadOperation[Any, Any], ...]:
        """Everything that can be asked here."""
        return tuple(entry[0] for purposes in self._registered.values() for entry in purposes.values())

    def knows(self, name: str) -> bool:
        """Whether an operation of this name is served, for whatever purpose."""
        return name in self._registered

    def register(self, operation: ReadOperation[A, R], function: ReadFunction[A, R]) -> None:
        """Serve an operation with a function of this owner.

        Raises:
            InvalidSetting: the operation belongs to another owner, has no caller, or is served already.
        """
        if operation.audience != self.owner:
            raise InvalidSetting(f"{operation.name} is a read of {operation.audience}, not of {self.owner}.")
        if not operation.callers:
            raise InvalidSetting(f"{operation.name} names no caller.")
        purposes = self._registered.setdefault(operation.name, {})
        if operation.purpose in purposes:
            raise InvalidSetting(f"{operation.name} is served for {operation.purpose} already.")
        purposes[operation.purpose] = (operation, function)

    def answer(self, name: str, body: bytes) -> bytes:
        """The body of the answer to one call.

        Raises:
            CallRefused: the call gets no answers.
            Exception: whatever the owner's function raises.
        """
        purposes = self._registered.get(name)
        if purposes is None:
            raise CallRefused(HTTPStatus.NOT_FOUND, "not-found", "This owner has no such read")
        try:
            request = decode_request(body)
        except ContractError as error:
            raise CallRefused(HTTPStatus.BAD_REQUEST, "invalid-request", str(error)) from None
        if request.purpose not in purposes:
            raise CallRefused(HTTPStatus.FORBIDDEN, "forbidden", "This read does not exist for the stated purpose")
        operation, function = purposes[request.purpose]
        arguments, caller = self._checked(operation, request.items)
        answers = function(caller, arguments)
        if len(answers) != len(arguments):
            raise RuntimeError(f"{name} gave {len(answers)} answers to {len(arguments)} items")
        return encode_response([one if isinstance(one, bytes) else one.canonical() for one in answers])

    def _checked(self, operation: ReadOperation[Any, Any], items: Sequence[ReadItem]) -> tuple[list[Any], Caller]:
        """The arguments of authentic items, and who asks."""
        arguments: list[Any] = []
        bindings: list[dict[str, str | int]] = []
        workload: str | None = None
        for item in items:
            try:
                claims = self._verifier.verify(item.token)
            except InvalidToken as error:
                raise CallRefused(HTTPStatus.UNAUTHORIZED, "unauthenticated", str(error)) from None
            try:
                asked = operation.arguments.decode(item.arguments)
            except ContractError as error:
                raise CallRefused(HTTPStatus.BAD_REQUEST, "invalid-request", str(error)) from None
            bound = bindings_of(asked)
            try:
                claims.require(audience=self.owner, scope=SCOPE, purpose=operation.purpose, bindings=bound)
            except InvalidToken as error:
                raise CallRefused(HTTPStatus.FORBIDDEN, "forbidden", str(error)) from None
            if claims.workload not in operation.callers:
                reason = "The workload is not one of this read's callers"
                raise CallRefused(HTTPStatus.FORBIDDEN, "forbidden", reason)
            if workload not in {None, claims.workload}:
                reason = "The items of one call belong to one workload"
                raise CallRefused(HTTPStatus.FORBIDDEN, "forbidden", reason)
            workload = claims.workload
            arguments.append(asked)
            bindings.append(bound)
        assert workload is not None  # noqa: S101 - a request has at least one item
        return arguments, Caller(workload, tuple(bindings))
