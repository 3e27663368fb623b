"""What billing answers about dimensions after the finalization: exposure chains and catch-up receipts (REF-44, RCP-57).

Each question states the complete identity that the caller expects; whatever differs is `conflicting`, and nothing of
what is stored is shown then. There is no list and no latest (SEC-08).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from oceanway.billing import store_settlement as store
from oceanway.billing.catch_up.consumer import build_receipt_inbox
from oceanway.billing.catch_up.decide import QUINT
from oceanway.billing.catch_up.works import PLACE, SUBJECT
from oceanway.contracts.facts.transitions import (
    LateSettlementCommandResult,
    LateSettlementExposure,
    SettlementTransition,
)
from oceanway.contracts.identity import quad_of
from oceanway.contracts.reads import Conflicting, NotFound
from oceanway.contracts.reads_billing import (
    READ_BILLING_SETTLEMENT_CATCH_UP_CONSUMER_RECEIPT,
    READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS,
    CatchUpReceiptAnswer,
    CatchUpReceiptFound,
    CatchUpReceiptQuestion,
    ExposureChainAnswer,
    ExposureChainFound,
    ExposureChainQuestion,
    StepLateCommandResult,
    StepTransition,
)
from oceanway.contracts.receipts.catch_up import BillingSettlementCatchUpConsumerReceipt
from seapost.inbox.deciding import read_decided

if TYPE_CHECKING:
    from oceanway.billing.store_settlement import ChainLink
    from oceanway.reads.call import Caller
    from oceanway.reads.server import Serving
    from seapost.database.pool import SyncPool

_IDENTITY: Final = (*SUBJECT.values(), *PLACE.values(), "settlement_economic_identity")


def register(serving: Serving, pool: SyncPool) -> None:
    """Serve billing's reads about dimensions from this database."""
    reads = SettlementReads(pool)
    serving.register(READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS, reads.chains)
    serving.register(READ_BILLING_SETTLEMENT_CATCH_UP_CONSUMER_RECEIPT, reads.receipts)


class SettlementReads:
    """The answers, each for a batch."""

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool
        self._inbox = build_receipt_inbox()

    def chains(self, caller: Caller, asked: Sequence[ExposureChainQuestion]) -> list[ExposureChainAnswer]:
        """The steps of dimensions that led to an exposure, or to its end (CASE-29)."""
        _ = caller
        with self._pool.connection() as connection:
            links = store.read_chains(
                connection, [(one.dimension_id, one.from_revision, one.to_revision) for one in asked]
            )
        found: dict[int, list[ChainLink]] = {}
        for link in links:
            found.setdefault(link.question, []).append(link)
        return [
            ExposureChainAnswer(answer=_chain(one, found.get(place, []))) for place, one in enumerate(asked, start=1)
        ]

    def receipts(self, caller: Caller, asked: Sequence[CatchUpReceiptQuestion]) -> list[CatchUpReceiptAnswer]:
        """Receipts of the catch-up consumer for their events (RCP-57)."""
        _ = caller
        with self._pool.connection() as connection:
            found = [
                read_decided(
                    connection,
                    self._inbox,
                    quad=quad_of(one, "billing_settlement_catch_up_consumer_receipt"),
                    event_id=one.event_id,
                    event_digest=one.event_envelope_sha256,
                )
                for one in asked
            ]
        return [CatchUpReceiptAnswer(answer=_receipt(one, it)) for one, it in zip(asked, found, strict=True)]


def _chain(asked: ExposureChainQuestion, links: Sequence[ChainLink]) -> ExposureChainFound | NotFound | Conflicting:
    """The complete chain, only if every step is of this dimension and the last one is the fact that is asked for."""
    if not links or len(links) != asked.to_revision - asked.from_revision:
        return NotFound()
    steps = [_step(link) for link in links]
    last = steps[-1]
    if last.kind != asked.owner_fact.kind or last.step()[3] != quad_of(asked.owner_fact, last.kind):
        return Conflicting()
    exposures = [one.exposure for one in steps]
    if exposures[-1] is None or exposures[-1].case_ref != asked.case_ref:
        return Conflicting()
    facts = [one.transition if isinstance(one, StepTransition) else one.command_result for one in steps]
    if any(getattr(fact, name) != getattr(asked, name) for fact in facts for name in _IDENTITY):
        return Conflicting()
    return ExposureChainFound(chain_count=len(steps), chain=steps)


def _step(link: ChainLink) -> StepTransition | StepLateCommandResult:
    exposure = None if link.exposure is None else LateSettlementExposure.decode(link.exposure)
    if link.fact_kind == "transition":
        return StepTransition(transition=SettlementTransition.decode(link.document), exposure=exposure)
    assert exposure is not None  # noqa: S101 - a late result has closed an exposure
    return StepLateCommandResult(command_result=LateSettlementCommandResult.decode(link.document), exposure=exposure)


def _receipt(
    asked: CatchUpReceiptQuestion,
    found: Any,  # noqa: ANN401 - a receipt, a conflict or nothing
) -> CatchUpReceiptFound | NotFound | Conflicting:
    if found is None:
        return NotFound()
    if not isinstance(found, BillingSettlementCatchUpConsumerReceipt):
        return Conflicting()
    names = (
        *_IDENTITY,
        "event_id",
        "event_type",
        "event_schema_version",
        "event_envelope_digest_algorithm_version",
        "event_envelope_sha256",
    )
    is_same = found.quad() == quad_of(asked, "billing_settlement_catch_up_consumer_receipt")
    is_same = is_same and all(getattr(found, name) == getattr(asked, name) for name in names)
    is_same = is_same and all(
        getattr(found.event_settlement_input, name) == getattr(asked, name) for name in QUINT.values()
    )
    return CatchUpReceiptFound(receipt=found) if is_same else Conflicting()
