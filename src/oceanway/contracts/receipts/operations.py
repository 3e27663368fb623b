"""The receipt of the operations projector (RCP-01)."""

from __future__ import annotations

from typing import Literal

from oceanway.contracts.quads_billing import OperationsProjectionAppliedReceiptQuad
from seapost.contracts.fields import Timestamp
from seapost.contracts.receipts import ProjectionReceipt


class OperationsProjectionAppliedReceipt(
    OperationsProjectionAppliedReceiptQuad,
    ProjectionReceipt,
    prefix="operationsProjectionAppliedReceipt",
    outside=("appliedAt",),
):
    """One projection version applied one event."""

    destination: Literal["core_operations"]  # pyright: ignore[reportIncompatibleVariableOverride]
    consumer_name: Literal["operations_projector"]  # pyright: ignore[reportIncompatibleVariableOverride]
    applied_at: Timestamp
