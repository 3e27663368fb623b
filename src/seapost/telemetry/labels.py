"""The guard in front of every label: a bounded number of values for each, whatever arrives (F78).

A label value that comes from a peer, an event or a configuration is taken while there is room for another
distinct one; after that it is shown as `other`. The number of time series is therefore bounded by the
settings, and a scrape stays small whoever sends what.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from seapost.model.outcome import ErrorCode
from seapost.telemetry.catalog import OUTCOMES

OTHER: Final = "other"
VALUE_LENGTH_MAX: Final = 200
DISTINCT_MAX: Final = 200

_CODES: Final = frozenset(code.value for code in ErrorCode)


class LabelGuard:
    """Admits the first `distinct_max` values of each label name; later ones become `other`.

    Outcomes and error codes are closed sets and are checked against them instead.
    """

    def __init__(self, distinct_max: int = DISTINCT_MAX) -> None:
        self._distinct_max = distinct_max
        self._admitted: dict[str, dict[str, str]] = {}
        self._lock = Lock()

    def admit(self, name: str, value: str) -> str:
        """The value to show for this label."""
        known = self._admitted.get(name)
        if known is not None and value in known:
            return value
        with self._lock:
            known = self._admitted.setdefault(name, {})
            if len(known) >= self._distinct_max or not _is_presentable(value):
                return OTHER
            return known.setdefault(value, value)

    @staticmethod
    def outcome(value: str) -> str:
        """A member of the closed set of outcomes, or `other`."""
        return value if value in OUTCOMES else OTHER

    @staticmethod
    def code(value: str | None) -> str:
        """A normalized error code; empty when there was no error."""
        if not value:
            return ""
        return str(value) if value in _CODES else OTHER


def _is_presentable(value: str) -> bool:
    return 0 < len(value) <= VALUE_LENGTH_MAX and value.isprintable()
