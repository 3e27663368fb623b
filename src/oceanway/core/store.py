"""Calls of the functions of core: one function, one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.errors import translating
from seapost.store.arrays import ByteaArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from psycopg import Connection

    Admission = tuple[bytes, UUID, UUID, bool]

_ADMIT: Final = "select * from core.run_admit_v1(%b, %b, %b)"


def admit(
    connection: Connection[Any],
    *,
    manifests: Iterable[bytes],
    run_events: Iterable[bytes],
    wallet_events: Iterable[bytes],
) -> list[Admission]:
    """Admit runs, all or none; of each the stored manifest, both event ids and whether it is new (TX-09)."""
    arguments = (ByteaArray(manifests), ByteaArray(run_events), ByteaArray(wallet_events))
    with translating():
        return [(document, run, wallet, new) for document, run, wallet, new in call(connection, _ADMIT, arguments)]
