"""The `Retry-After` field of a response (RFC 9110, section 10.2.3), read without trust (F26)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

DIGITS_MAX: Final = 18

_SECONDS: Final = re.compile(r"[0-9]+", re.ASCII)


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds to wait from `now`; None when the field is absent or invalid.

    A date in the past is a valid wish for no wait: 0. A huge number is returned as it is, for the retry
    policy clamps every wish; anything that is neither digits nor an HTTP date is ignored.
    """
    if text is None:
        return None
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return float(text[:DIGITS_MAX]) if len(text) <= DIGITS_MAX else float(10**DIGITS_MAX)
    if not text.endswith("GMT"):
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
