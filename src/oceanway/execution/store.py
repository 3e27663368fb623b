"""Calls of the functions of execution: one function, one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.errors import translating
from seapost.store.arrays import ByteaArray, TextArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from psycopg import Connection

    Finalized = tuple[bytes, UUID, bool]
    Closing = tuple[bytes | None, list[dict[str, str]], bytes | None, UUID | None]
    EligibilityRow = tuple[bytes | None, bytes | None, UUID | None, str | None, bytes | None]
    FinalizationRow = tuple[bytes | None, bytes | None, bytes | None]

_OPEN: Final = "select execution.run_open_v1(%b)"
_REGISTER: Final = "select execution.attempt_register_v1(%b)"
_START: Final = "select execution.attempt_start_v1(%b)"
_FINALIZE: Final = "select * from execution.eligibility_finalize_v1(%b, %b)"
_CLOSING: Final = "select * from execution.run_closing_v1(%b)"
_CLOSE: Final = "select execution.run_close_v1(%b, %b, %b)"
_DECLARE_ELIGIBILITY: Final = "select execution.eligibility_declare_conflict_v1(%b)"
_REPAIR_ELIGIBILITY: Final = "select execution.eligibility_repair_v1(%b)"
_DECLARE_CLOSURE: Final = "select execution.closure_declare_conflict_v1(%b)"
_REPAIR_CLOSURE: Final = "select execution.closure_repair_v1(%b)"
_MANIFESTS: Final = "select * from execution.attempt_read_v1(%b)"
_ELIGIBILITY: Final = "select * from execution.eligibility_read_v1(%b)"
_FINALIZATION: Final = "select * from execution.run_finalization_v1(%b)"


def open_runs(connection: Connection[Any], *, manifests: Iterable[bytes]) -> int:
    """Take over admitted runs; how many are new."""
    with translating():
        [(new,)] = call(connection, _OPEN, (ByteaArray(manifests),))
    return int(new)


def register_attempts(connection: Connection[Any], *, manifests: Iterable[bytes]) -> int:
    """Register attempts of open runs; how many are new."""
    with translating():
        [(new,)] = call(connection, _REGISTER, (ByteaArray(manifests),))
    return int(new)


def start_attempts(connection: Connection[Any], *, attempts: Iterable[str]) -> int:
    """Record that attempts were handed to their gateway; how many are new."""
    with translating():
        [(new,)] = call(connection, _START, (TextArray(attempts),))
    return int(new)


def finalize_eligibility(
    connection: Connection[Any], *, facts: Iterable[bytes], events: Iterable[bytes]
) -> list[Finalized]:
    """Record how attempts ended; of each the stored fact, its event and whether it is new (TX-13)."""
    with translating():
        rows = call(connection, _FINALIZE, (ByteaArray(facts), ByteaArray(events)))
    return [(document, event_id, is_new) for document, event_id, is_new in rows]


def closing(connection: Connection[Any], *, runs: Iterable[str]) -> list[Closing]:
    """What closures are made from: admission, attempts now, and the closure with its event if there is one."""
    with translating():
        rows = call(connection, _CLOSING, (TextArray(runs),))
    return [(admission, attempts, fact, event_id) for admission, attempts, fact, event_id in rows]


def close_runs(
    connection: Connection[Any], *, sets: Iterable[bytes], facts: Iterable[bytes], events: Iterable[bytes]
) -> None:
    """Close runs, all or none (TX-14)."""
    with translating():
        call(connection, _CLOSE, (ByteaArray(sets), ByteaArray(facts), ByteaArray(events)))


def declare_eligibility_conflict(connection: Connection[Any], *, document: bytes) -> None:
    """Record that two claims about the end of an attempt exclude each other."""
    with translating():
        call(connection, _DECLARE_ELIGIBILITY, (document,))


def repair_eligibility(connection: Connection[Any], *, attempt: str) -> bool:
    """End the open conflict of an attempt; whether there was one."""
    with translating():
        [(repaired,)] = call(connection, _REPAIR_ELIGIBILITY, (attempt,))
    return bool(repaired)


def declare_closure_conflict(connection: Connection[Any], *, document: bytes) -> None:
    """Record that two claims about the closure of a run exclude each other."""
    with translating():
        call(connection, _DECLARE_CLOSURE, (document,))


def repair_closure(connection: Connection[Any], *, run: str) -> bool:
    """End the open conflict of a run; whether there was one."""
    with translating():
        [(repaired,)] = call(connection, _REPAIR_CLOSURE, (run,))
    return bool(repaired)


def manifests(connection: Connection[Any], *, attempts: Iterable[str]) -> list[bytes | None]:
    """Manifests of attempts, in order."""
    with translating():
        return [manifest for (manifest,) in call(connection, _MANIFESTS, (TextArray(attempts),))]


def eligibility(connection: Connection[Any], *, attempts: Iterable[str]) -> list[EligibilityRow]:
    """Manifest, fact, event, digest of its envelope and open conflict of attempts, in order."""
    with translating():
        rows = call(connection, _ELIGIBILITY, (TextArray(attempts),))
    return [(manifest, fact, event_id, sha256, conflict) for manifest, fact, event_id, sha256, conflict in rows]


def finalizations(connection: Connection[Any], *, runs: Iterable[str]) -> list[FinalizationRow]:
    """Closure fact, attempt set and open conflict of runs, in order."""
    with translating():
        rows = call(connection, _FINALIZATION, (TextArray(runs),))
    return [(fact, attempts, conflict) for fact, attempts, conflict in rows]
