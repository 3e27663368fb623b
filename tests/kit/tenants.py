"""Events of several tenants, each in a fair lane that the test knows."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED
from tests.kit.kernel import Kernel

APPEND_MAX = 1_000


def fair(kernel: Kernel, lanes: int, *, destination: str = BILLING, actor: str = "tester") -> None:
    """Spread the new events of a destination over so many lanes."""
    kernel.run("select seapost.destination_set_fair_lanes_v1(%s, %s, %s)", destination, lanes, actor)


def tenant_in(kernel: Kernel, lane: int, lanes: int, *, number: int = 0) -> str:
    """A tenant whose events wait in this lane of so many; `number` tells several of them apart."""
    names = (f"tenant-{serial}" for serial in range(100_000))
    found: Iterator[str] = (
        name
        for name in names
        if kernel.value("select seapost.delivery_tenant_hash(%s)", of_tenant(name)) % lanes == lane
    )
    for _ in range(number):
        next(found)
    return next(found)


def of_tenant(tenant: str, event_type: str = PLACED) -> bytes:
    """An envelope of a tenant."""
    return builders.envelope(
        event_type, tenant={"tenantKind": "organization", "tenantId": tenant, "workspaceId": "main"}
    )


def append_of(kernel: Kernel, tenant: str, count: int = 1, *, event_type: str = PLACED) -> list[UUID]:
    """Append so many events of a tenant, in statements of a thousand; their ids in order."""
    ids: list[UUID] = []
    for start in range(0, count, APPEND_MAX):
        envelopes = [of_tenant(tenant, event_type) for _ in range(min(APPEND_MAX, count - start))]
        kernel.append(*envelopes)
        ids += map(builders.event_id_of, envelopes)
    return ids
