"""The five fields of each quint, under the name by which other objects carry it (section 0.2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.fields import StateVersion
from oceanway.contracts.quads import CostAvailabilityQuad, CurrentAvailabilityQuad, SettlementInputSnapshotQuad
from seapost.contracts.fields import Algorithm, Digest, Identifier, Revision, Version


class Absent(Contract):
    """There is none; the branch that says so."""

    state: Literal["none"] = "none"


class CurrentAvailabilityQuint(CurrentAvailabilityQuad):
    """One availability snapshot as the current one of its chain."""

    current_availability_state_version: Revision


class CostAvailabilityQuint(CostAvailabilityQuad):
    """One availability snapshot of provider cost."""

    cost_availability_state_version: Revision


class SettlementInputQuint(SettlementInputSnapshotQuad):
    """One settlement input snapshot; its fifth field has a name of its own (section 0.2)."""

    settlement_input_state_version: Revision


class SettlementInputPresent(SettlementInputQuint):
    """There is a settlement input, and it is this one."""

    state: Literal["present"] = "present"


OptionalSettlementInput = Annotated[Absent | SettlementInputPresent, Field(discriminator="state")]
"""A settlement input that may not exist yet."""


class DimensionKey(Contract):
    """One charge dimension inside a reservation: what sets of dimensions are sorted by (REF-32)."""

    run_step_id: Identifier
    execution_attempt_id: Identifier
    charge_dimension_key: Identifier


class SettlementInputSnapshotItem(DimensionKey):
    """One item of `settlementInputSnapshots[]`: a dimension with the quint of its current snapshot (section 0.2)."""

    ref: Identifier
    schema_version: Version
    digest_algorithm_version: Algorithm
    digest: Digest
    state_version: Revision


class Validated(Contract):
    """What a current validation confirmed; a route binding has no state version."""

    ref: Identifier
    schema_version: Version
    digest_algorithm_version: Algorithm
    digest: Digest
    state_version: StateVersion | None = None
