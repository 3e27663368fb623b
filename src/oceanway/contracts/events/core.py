"""The payloads of core: a run was created, and money was set aside for it (REF-15)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.fields import Currency, Quantity
from oceanway.contracts.order import ascending
from oceanway.contracts.quads import RunAdmissionManifestQuad
from oceanway.contracts.subject import RunFields
from seapost.contracts.fields import Identifier, Timestamp


class RunCreated(
    RunFields, RunAdmissionManifestQuad, OwnerEvent, type="run.created@2.0", producer="core", aggregate="run"
):
    """A run was admitted with these steps."""

    run_step_ids: Annotated[list[Identifier], Field(min_length=1), ascending()]
    admitted_at: Timestamp

    def source_fact_key(self) -> str:
        """The admission manifest."""
        return self.run_admission_manifest_ref


class WalletReserved(RunFields, OwnerEvent, type="wallet.reserved@2.0", producer="core", aggregate="reservation"):
    """An amount was reserved for a run."""

    reserved_amount: Quantity
    currency: Currency
    reservation_state_version: Literal[1]

    def source_fact_key(self) -> str:
        """The reservation."""
        return self.billing_reservation_id
