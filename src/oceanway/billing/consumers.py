"""Billing's two consumers, for the process that receives events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oceanway.billing.catch_up.consumer import build_catch_up_inbox
from oceanway.billing.finalization.coordinator import build_coordinator_inbox

if TYPE_CHECKING:
    from oceanway.reads.client import Reader
    from seapost.inbox.deciding import DecidingInbox


def build_inboxes(reader: Reader) -> list[DecidingInbox]:
    """The finalization coordinator and the settlement catch-up."""
    return [build_coordinator_inbox(reader), build_catch_up_inbox(reader)]
