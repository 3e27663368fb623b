"""Metering's half of the settlement chain, proved from its own database alone (ORD-08)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from psycopg import Connection

_CHAIN: Final = """
select dimensions, published, unrouted, pending, leased, quarantined, acknowledged from metering.settlement_chain"""


class MeteringChain(NamedTuple):
    """How far billing was told of settlement inputs, at one moment.

    Attributes:
        dimensions: charge dimensions with a current input.
        published: inputs, each with one event.
        unrouted: inputs whose event has no delivery to billing.
        pending, leased, quarantined, acknowledged: deliveries to billing, by where they stand.
    """

    dimensions: int
    published: int
    unrouted: int
    pending: int
    leased: int
    quarantined: int
    acknowledged: int

    @property
    def is_complete(self) -> bool:
        """Whether billing has acknowledged every input that metering published, up to this moment."""
        return not (self.unrouted or self.pending or self.leased or self.quarantined)


def settlement_chain(connection: Connection[Any]) -> MeteringChain:
    """Look, as an auditor; changes nothing."""
    [row] = connection.execute(_CHAIN)
    return MeteringChain(*row)
