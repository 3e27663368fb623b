"""No order is promised, so nothing waits: a failure delays its own delivery and no other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kit.kernel import Kernel


@pytest.mark.req("F24", "STO-26")
def test_a_failure_holds_up_nobody(kernel: Kernel) -> None:
    """The first of three deliveries fails for an hour; the second and third go on, and the first is still there."""
    kernel.append_new(count=3)
    first, second, third = kernel.claim()
    kernel.retry(first, delay=timedelta(hours=1))
    kernel.acknowledge(second, third)

    assert kernel.status(first.fence.event_id) == "pending"
    assert [kernel.status(claim.fence.event_id) for claim in (second, third)] == ["acknowledged"] * 2
    [later] = kernel.append_new()
    assert [claim.fence.event_id for claim in kernel.claim()] == [later]


@pytest.mark.req("F24")
def test_a_quarantine_holds_up_nobody(lean_kernel: Kernel) -> None:
    """An event that can never be processed leaves the ones after it deliverable."""
    lean_kernel.append_new(count=2)
    first, second = lean_kernel.claim()
    lean_kernel.quarantine(first)
    lean_kernel.acknowledge(second)

    assert lean_kernel.status(first.fence.event_id) == "quarantined"
    assert lean_kernel.status(second.fence.event_id) == "acknowledged"
