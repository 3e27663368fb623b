"""The catch-up fence of one dimension, as billing shows it (REF-46)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.settlement import SettlementDimensionFields
from oceanway.contracts.fields import Generation
from oceanway.contracts.quads import CurrentValidationReceiptQuad
from oceanway.contracts.quads_billing import (
    BillingSettlementCatchUpWorkAttemptBlockedQuad,
    BillingSettlementCatchUpWorkQuad,
)
from oceanway.contracts.quints import Absent, OptionalSettlementInput
from seapost.contracts.fields import Identifier, Revision


class CatchUpActiveWork(BillingSettlementCatchUpWorkQuad):
    """The work that is to be done next."""

    state: Literal["pending"] = "pending"
    work_generation: Revision
    billing_catch_up_validation_operation_id: Identifier


class CatchUpAwaitingFinalization(Contract):
    """The reservation is not finalized, so there is nothing to catch up with."""

    state: Literal["awaiting_finalization"] = "awaiting_finalization"
    active_work: Absent


class CatchUpPendingVerification(Contract):
    """There is work to do."""

    state: Literal["pending_verification"] = "pending_verification"
    active_work: CatchUpActiveWork


class CatchUpBlockedOnOwnerConflict(BillingSettlementCatchUpWorkAttemptBlockedQuad):
    """The work is pending, but metering contradicts itself."""

    state: Literal["blocked_on_owner_conflict"] = "blocked_on_owner_conflict"
    active_work: CatchUpActiveWork


class CatchUpCaughtUp(CurrentValidationReceiptQuad):
    """Nothing newer existed when metering confirmed it."""

    state: Literal["caught_up"] = "caught_up"
    active_work: Absent


class BillingSettlementCatchUpFence(SettlementDimensionFields):
    """The state of one dimension's catch-up; it changes, and so has no digest."""

    settlement_catch_up_fence_revision: Revision
    latest_work_generation: Generation
    highest_observed_input: OptionalSettlementInput
    last_evaluated_input: OptionalSettlementInput
    coordination_state: Annotated[
        CatchUpAwaitingFinalization | CatchUpPendingVerification | CatchUpBlockedOnOwnerConflict | CatchUpCaughtUp,
        Field(discriminator="state"),
    ]
