"""The payload of metering: the settlement input of a dimension changed (annex B, 13)."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.settlement import EconomicFields, require_predecessor
from oceanway.contracts.quints import OptionalSettlementInput, SettlementInputQuint


class SettlementInputCurrentChanged(
    EconomicFields,
    SettlementInputQuint,
    OwnerEvent,
    type="metering.settlement-input.current-changed@1",
    producer="metering",
    aggregate="settlement_dimension_input",
):
    """A dimension has a new current settlement input; the payload names it and its direct predecessor (APP-25)."""

    predecessor: OptionalSettlementInput

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_predecessor(self.predecessor, self.settlement_input_state_version)
        return self

    def source_fact_key(self) -> str:
        """The snapshot."""
        return self.settlement_input_snapshot_ref
