"""Billing's half of the settlement chain, proved from its own database alone (ORD-08)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from psycopg import Connection

_CHAIN: Final = """
select receipts, watermarks, without_receipt, awaiting_finalization, pending_verification, blocked, caught_up, behind,
    unfinished_works
from billing.settlement_chain"""


class BillingChain(NamedTuple):
    """How far billing has evaluated the settlement inputs that it accepted, at one moment.

    Attributes:
        receipts: of the catch-up consumer, one for each accepted input.
        watermarks: charge dimensions with a newest known input.
        without_receipt: watermarks whose input no receipt accepted.
        awaiting_finalization, pending_verification, blocked, caught_up: watermarks by the state of their fence.
        behind: dimensions called caught up whose last evaluated input is not their watermark.
        unfinished_works: catch-up works without a Finish.
    """

    receipts: int
    watermarks: int
    without_receipt: int
    awaiting_finalization: int
    pending_verification: int
    blocked: int
    caught_up: int
    behind: int
    unfinished_works: int

    @property
    def is_complete(self) -> bool:
        """Whether every input that billing accepted has been evaluated, up to this moment."""
        is_idle = self.caught_up == self.watermarks and not self.unfinished_works
        return is_idle and not (self.without_receipt or self.behind)


def settlement_chain(connection: Connection[Any]) -> BillingChain:
    """Look, as an auditor; changes nothing."""
    [row] = connection.execute(_CHAIN)
    return BillingChain(*row)
