"""Times on the wire: RFC 3339, UTC, six digits after the second (GEN-08)."""

from __future__ import annotations

from datetime import UTC, datetime


def time_text(at: datetime) -> str:
    """The one form, for instance `2026-01-05T08:30:00.000000Z`; `at` knows its zone."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
