"""The delivery set definition: which event must reach which destination, frozen and digested (SET-01).

Order is by Unicode code point, the same as PostgreSQL's `collate "C"` (AMB-15). What a registry adds
(status, times, source release) is no part of it (SET-13).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.contract import Contract
from seapost.contracts.fields import (
    Algorithm,
    Count,
    Digest,
    EventType,
    Label,
    Name,
    TypeName,
    Version,
)
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, ReceiptRegistry
from seapost.model.delivery_set import DefinitionQuad
from seapost.model.errors import ContractError, DeliverySetConflict, UnknownContract

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seapost.contracts.examination import JSONValue

EVENTS_MAX: Final = 1_000
MEMBERS_MAX: Final = 5_000


class ApplicableEvent(Contract):
    """One exact pair; there are no prefixes, wildcards or aliases."""

    event_type: EventType
    event_schema_version: Version

    def key(self) -> tuple[str, str]:
        """What the list is sorted by (SET-02)."""
        return (self.event_type, self.event_schema_version)


class NoProjectionTarget(Contract):
    """The member expects an ordinary receipt."""

    state: Literal["not_applicable"] = "not_applicable"


class RequiredProjectionTarget(Contract):
    """The member accepts the receipt of exactly this projection version (SET-11)."""

    state: Literal["required"] = "required"
    projection_name: Name
    projection_version: Version


ProjectionTarget = Annotated[NoProjectionTarget | RequiredProjectionTarget, Field(discriminator="state")]


class DeliverySetMember(Contract):
    """One line: this event goes to this destination, and this receipt proves it."""

    event_type: EventType
    event_schema_version: Version
    destination: Name
    consumer_name: Name
    expected_receipt_type: TypeName
    expected_receipt_schema_version: Version
    projection_target: ProjectionTarget
    mandatory: bool

    def key(self) -> tuple[str, str, str, str]:
        """What the list is sorted by (SET-03)."""
        return (self.event_type, self.event_schema_version, self.destination, self.consumer_name)

    def event_key(self) -> tuple[str, str]:
        """The pair that must be applicable (SET-06)."""
        return (self.event_type, self.event_schema_version)


class DeliverySetDefinition(ContentAddressed, prefix="deliverySetDefinition", ref="deliverySetVersion"):
    """A complete, closed delivery set. Its version plays the part of the reference and is digested (SET-12).

    `from_candidate` does not ask which receipt types exist: a registered definition was checked when it was made,
    and an old one may expect a type that this application no longer registers.
    """

    delivery_set_version: Label
    delivery_set_definition_schema_version: Literal["1"]
    delivery_set_definition_digest_algorithm_version: Algorithm
    delivery_set_definition_digest: Digest
    applicable_event_count: Count
    applicable_events: Annotated[list[ApplicableEvent], Field(max_length=EVENTS_MAX)]
    member_count: Count
    members: Annotated[list[DeliverySetMember], Field(max_length=MEMBERS_MAX)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Everything SET-02 to SET-07 ask of the two lists."""
        _require_count(self.applicable_event_count, self.applicable_events, "applicableEvent")
        _require_count(self.member_count, self.members, "member")
        _require_order([event.key() for event in self.applicable_events], "applicableEvents")
        _require_order([member.key() for member in self.members], "members")
        applicable = {event.key() for event in self.applicable_events}
        consumers: dict[tuple[str, str, str], str] = {}
        for index, member in enumerate(self.members):
            if member.event_key() not in applicable:
                message = "The member's event is not among the applicable events"
                raise ContractError(message, pointer=f"/members/{index}", rule="orphan_member")
            consumer = consumers.setdefault(member.key()[:3], member.consumer_name)
            if consumer != member.consumer_name:
                message = f"This event already goes to {member.destination} for the consumer {consumer}"
                raise ContractError(message, pointer=f"/members/{index}/consumerName", rule="rebound_destination")
        return self

    @classmethod
    def decode(
        cls,
        document: bytes | str | dict[str, JSONValue],
        *,
        receipts: ReceiptRegistry | None = DEFAULT_RECEIPTS,
    ) -> Self:
        """Read a definition strictly (SET-14).

        Args:
            document: JSON text, or a JSON object already read.
            receipts: the receipt types members may expect. None skips this one check, for readers that
                only look at a definition, such as an operator's command.

        Raises:
            UnknownContract: unknown schema, algorithm or receipt type.
            DigestMismatch: the digest does not belong to the content.
            ContractError: any other rule of SET-01 to SET-14, with pointer and rule.
        """
        definition = super().decode(document)
        if receipts is not None:
            definition.check_receipts(receipts)
        return definition

    def check_receipts(self, receipts: ReceiptRegistry) -> None:
        """Require of each member: a projection target exactly when it expects a projection receipt (AMB-38).

        Raises:
            UnknownContract: a member expects a receipt type that is not registered.
            ContractError: receipt type and projection target do not fit.
        """
        for index, member in enumerate(self.members):
            try:
                kind = receipts.get(member.expected_receipt_type, member.expected_receipt_schema_version)
            except UnknownContract as error:
                pointer = f"/members/{index}/expectedReceiptType"
                raise UnknownContract(error.message, pointer=pointer, rule=error.rule) from None
            if kind.is_projection != isinstance(member.projection_target, RequiredProjectionTarget):
                need = "needs" if kind.is_projection else "allows no"
                message = f"{kind.name} {need} a projection target"
                raise ContractError(message, pointer=f"/members/{index}/projectionTarget", rule="member_branch")

    def find(self, event_type: str, schema_version: str, destination: str) -> DeliverySetMember | None:
        """The one member that sends this exact pair to this destination (SET-07), or None."""
        for member in self.members:
            if member.key()[:3] == (event_type, schema_version, destination):
                return member
        return None

    def mandatory_members(self, event_type: str, schema_version: str) -> list[DeliverySetMember]:
        """The deliveries that an append of this exact pair must create (SET-08)."""
        return [m for m in self.members if m.mandatory and m.event_key() == (event_type, schema_version)]

    def definition_quad(self) -> DefinitionQuad:
        """The complete identity, as the rest of Seapost carries it."""
        quad = self.quad()
        return DefinitionQuad(quad.ref, quad.schema_version, quad.digest_algorithm_version, quad.digest)

    def require_same(self, other: DeliverySetDefinition) -> None:
        """Raise `DeliverySetConflict` when `other` has this version but not this content (SET-14, SET-17)."""
        if self.delivery_set_version == other.delivery_set_version and self.canonical() != other.canonical():
            raise DeliverySetConflict(detail=f"version {self.delivery_set_version}")


def derive(
    version: str,
    members: Iterable[DeliverySetMember],
    *,
    events: Iterable[tuple[str, str]] = (),
    receipts: ReceiptRegistry | None = DEFAULT_RECEIPTS,
) -> DeliverySetDefinition:
    """Build the definition of these members: sorted, counted and digested.

    Args:
        version: the new delivery set version.
        members: the lines, in any order.
        events: further applicable pairs of event type and schema version, which may go nowhere yet.
        receipts: the receipt types members may expect; None skips this check.

    Raises:
        UnknownContract: a member expects a receipt type that is not registered.
        ContractError: the lines break a rule, for example one destination with two consumers.
    """
    lines = sorted(members, key=DeliverySetMember.key)
    pairs = sorted({*events, *(member.event_key() for member in lines)})
    definition = DeliverySetDefinition.assemble(
        delivery_set_version=version,
        applicable_event_count=len(pairs),
        applicable_events=[ApplicableEvent(event_type=kind, event_schema_version=schema) for kind, schema in pairs],
        member_count=len(lines),
        members=lines,
    )
    if receipts is not None:
        definition.check_receipts(receipts)
    return definition


def _require_count(stated: int, items: Sequence[Contract], name: str) -> None:
    if stated != len(items):
        message = f"The count says {stated}, but there are {len(items)}"
        raise ContractError(message, pointer=f"/{name}Count", rule="count")


def _require_order(keys: Sequence[tuple[str, ...]], name: str) -> None:
    for index, (before, after) in enumerate(pairwise(keys), start=1):
        if before == after:
            message = "The list holds this line twice"
            raise ContractError(message, pointer=f"/{name}/{index}", rule="duplicate")
        if before > after:
            message = "The list is not sorted by Unicode code point"
            raise ContractError(message, pointer=f"/{name}/{index}", rule="not_sorted")
