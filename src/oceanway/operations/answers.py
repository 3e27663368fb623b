"""Owners' answers that a projection used, kept with it, so that a rebuild asks nobody again (AMB-39)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oceanway.contracts.reads import A, R, ReadOperation
from oceanway.operations import store_sources
from oceanway.reads.errors import OwnerUnreadable

if TYPE_CHECKING:
    from seapost.contracts.content_addressed import Quad
    from seapost.database.pool import SyncPool


@dataclass(frozen=True, slots=True)
class Answered:
    """One question and its answer, both as canonical text, with the quad of the object that was found."""

    operation: str
    purpose: str
    quad: Quad
    arguments: bytes
    answer: bytes

    def identity(self) -> dict[str, str]:
        """What names the stored answer."""
        return {
            "operation": self.operation,
            "purpose": self.purpose,
            "ref": self.quad.ref,
            "schemaVersion": self.quad.schema_version,
            "digestAlgorithmVersion": self.quad.digest_algorithm_version,
            "digest": self.quad.digest,
        }


class KeptAnswers:
    """A `Reader` that answers from what was stored with the projection, and asks no owner.

    Args:
        pool: of the database of operations, as its consumer.
    """

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """One stored answer for each of the arguments, in order.

        Raises:
            OwnerUnreadable: one of the questions was never answered.
        """
        with self._pool.connection() as connection:
            found = store_sources.read_results(
                connection,
                operation=operation.name,
                purpose=operation.purpose,
                arguments=[one.canonical() for one in arguments],
            )
        answers: list[R] = []
        for answer in found:
            if answer is None:
                raise OwnerUnreadable(operation.audience, operation.name, "no answer was kept")
            answers.append(operation.answer.decode(answer))
        return answers
