"""The declaration of an owner read: what it is called, for whom, and what goes in and comes out (REF-11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from oceanway.contracts.base import Contract
from seapost.contracts.fields import AggregateKind, Algorithm, Digest, EventId, EventType, Identifier, Revision, Version

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)


@dataclass(frozen=True, slots=True)
class ReadOperation(Generic[A, R]):
    """One question that an owner answers about its own facts, for one purpose.

    Attributes:
        name: of the operation on the wire, in camel case.
        audience: the owner.
        purpose: exact; an operation with two purposes is declared twice.
        arguments: everything that the caller must know already; each leaf is bound by the caller's token.
        answer: a closed union of outcomes.
        callers: workloads that may ask.
    """

    name: str
    audience: str
    purpose: str
    arguments: type[A]
    answer: type[R]
    callers: frozenset[str]


class NotFound(Contract):
    """The owner has no such fact, in any form."""

    result: Literal["not_found"] = "not_found"


class Conflicting(Contract):
    """The owner has something else under this identity."""

    result: Literal["conflicting"] = "conflicting"


class EventBinding(Contract):
    """The accepted event that a question is asked for."""

    event_id: EventId
    event_type: EventType
    event_schema_version: Version
    event_envelope_digest_algorithm_version: Algorithm
    event_envelope_sha256: Digest


class AggregateBinding(Contract):
    """The aggregate of that event."""

    aggregate_kind: AggregateKind
    aggregate_id: Identifier
    aggregate_revision: Revision
