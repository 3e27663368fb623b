"""What the driver and its operator look at between their deeds; they only look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, LiteralString

if TYPE_CHECKING:
    from psycopg import Connection

_OPEN: Final = "select count(*) from billing.reservation where state = 'open'"
_FINALIZED: Final = "select run_id from billing.reservation where state = 'finalized' and run_id = any(%s)"
_BUSY: Final = """
select count(*) filter (where active_work_ref is not null), coalesce(sum(fence_revision), 0)
from billing.catch_up_fence"""
_CASES: Final = """
select case_ref, operation_id, generation from operations.finalization_case where state = 'open' order by case_ref"""
_LATE_CASES: Final = "select case_ref from operations.late_case where state = 'open' order by case_ref"


def unfinished(billing: Connection[Any]) -> int:
    """Reservations that are not finalized."""
    return _one(billing, _OPEN)[0]


def finalized(billing: Connection[Any], run_ids: list[str]) -> set[str]:
    """Those of these runs that are finalized."""
    return {run_id for (run_id,) in billing.execute(_FINALIZED, (run_ids,))}


def catching_up(billing: Connection[Any]) -> tuple[int, int]:
    """Catch-up works that are not finished, and a number that grows with every input."""
    busy, moved = _one(billing, _BUSY)
    return int(busy), int(moved)


def open_cases(core: Connection[Any]) -> list[tuple[str, str, int]]:
    """Open finalization cases as operations sees them: case, run and generation."""
    return [(case, run, int(generation)) for case, run, generation in core.execute(_CASES)]


def open_late_cases(core: Connection[Any]) -> list[str]:
    """Open late cases as operations sees them."""
    return [case for (case,) in core.execute(_LATE_CASES)]


def _one(connection: Connection[Any], statement: LiteralString) -> tuple[Any, ...]:
    row = connection.execute(statement).fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    return row
