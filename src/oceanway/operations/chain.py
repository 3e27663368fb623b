"""A chain of decisions: steps in a fixed order, each content-addressed and bound to the one before (CASE-25, REF-41).

Authority: the stored steps. A step is recorded once; the same step again returns the first one, another one is refused,
and so is a step whose predecessor is missing or has another digest.

A chain can end without an effect: refused, or with an approval or grant that ran out. A later request then begins the
next chain of the same operation, so that no case is left without a way out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import jwt

from oceanway.contracts.errors import Incomplete, OwnerConflict
from oceanway.operations import store_decisions as store
from seapost.contracts.content_addressed import ContentAddressed
from seapost.transport.token import ALGORITHM, key_id

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from psycopg import Connection

ATTEMPTS_MAX: Final = 100

T = TypeVar("T", bound=ContentAddressed)


@dataclass(frozen=True, slots=True)
class Chain:
    """The stored steps of one chain.

    Attributes:
        chain_id: the operation that it is about, with the number of the attempt.
        documents: canonical texts by the name of their step.
    """

    chain_id: str
    documents: Mapping[str, bytes]

    def has(self, name: str) -> bool:
        """Whether this step was taken."""
        return name in self.documents

    def step(self, name: str, kind: type[T]) -> T:
        """A step that must have been taken.

        Raises:
            Incomplete: it was not.
        """
        document = self.documents.get(name)
        if document is None:
            raise Incomplete(f"The step {name} has not been taken.")
        return kind.decode(document)


def current(connection: Connection[Any], operation_id: str, is_over: Callable[[Chain], bool]) -> Chain:
    """The chain of an operation that goes on, or the next one without steps.

    Args:
        operation_id: what the chain will allow.
        is_over: whether a chain ended without an effect.

    Raises:
        OwnerConflict: too many chains of this operation ended without an effect.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        chain_id = f"{operation_id}/{attempt}"
        chain = Chain(chain_id, store.read(connection, chain_id=chain_id))
        if not chain.documents or not is_over(chain):
            return chain
    raise OwnerConflict(f"{ATTEMPTS_MAX} chains of this operation ended without an effect.")


def record(
    connection: Connection[Any],
    chain: Chain,
    step: tuple[int, str],
    made: T,
    *,
    after: ContentAddressed | None,
    actor: str,
) -> T:
    """Take a step, or return the first one in the transaction of the caller.

    Args:
        step: its number and name.
        after: the object of the step before.
        actor: who takes it.

    Raises:
        OwnerConflict: the step was taken with other content.
        Stale: the step before is missing or another.
    """
    quad = made.quad()
    number, name = step
    stored = store.record(
        connection,
        chain_id=chain.chain_id,
        step=store.Step(number, name, made.canonical()),
        object_ref=quad.ref,
        object_digest=quad.digest,
        predecessor_digest=None if after is None else after.quad().digest,
        actor=actor,
    )
    return type(made).decode(stored)


def sign_grant(grant: ContentAddressed, key: Ed25519PrivateKey) -> str:
    """The token of a grant: its whole document as claims. The same grant and key make the same token."""
    return jwt.encode(
        dict(grant.to_json()),  # pyright: ignore[reportArgumentType] - a document is an object
        key,
        algorithm=ALGORITHM,
        headers={"kid": key_id(key.public_key())},
    )


def moment_of(now: datetime | None) -> datetime:
    """The given moment, or the clock's."""
    return datetime.now(UTC) if now is None else now
