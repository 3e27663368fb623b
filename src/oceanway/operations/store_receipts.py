"""What this database's registry says a receipt of the projector must be for (RCP-05)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seapost.store.calls import call

if TYPE_CHECKING:
    from psycopg import Connection

_MEMBER: Final = (
    "select m.expected_receipt_type, m.expected_receipt_schema_version, m.projection_name, m.projection_version"
    " from seapost.delivery_set_members as m"
    " where m.delivery_set_version = %t and m.delivery_set_definition_schema_version = %t"
    " and m.delivery_set_definition_digest_algorithm_version = %t and m.delivery_set_definition_digest = %t"
    " and m.event_type = %t and m.schema_version = %t and m.destination = %t and m.consumer_name = %t"
)


class MemberKey(NamedTuple):
    """A definition by its quad, and the coordinates of one of its members."""

    delivery_set_version: str
    definition_schema_version: str
    definition_digest_algorithm_version: str
    definition_digest: str
    event_type: str
    event_schema_version: str
    destination: str
    consumer_name: str


class Expected(NamedTuple):
    """The receipt that a member expects."""

    receipt_type: str
    receipt_schema_version: str
    projection_name: str | None
    projection_version: str | None


def expected_receipt(connection: Connection[Any], *, key: MemberKey) -> Expected | None:
    """What the member expects; None when this registry has no such definition or member."""
    rows = call(connection, _MEMBER, key)
    return Expected(*rows[0]) if rows else None
