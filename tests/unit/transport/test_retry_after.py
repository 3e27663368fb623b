"""The Retry-After field: seconds or an HTTP date, anything else is ignored."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seapost.transport.retry_after import parse_retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.req("F26")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("9999999999", 9_999_999_999.0),
        ("9" * 400, 1e18),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 12:01:40 GMT", 100.0),
        ("Mon, 01 Mar 2027 12:00:00 GMT", 31_536_000.0),
        (None, None),
        ("", None),
        ("-5", None),
        ("+5", None),
        ("1.5", None),
        ("1e3", None),
        ("soon", None),
        ("GMT", None),
        ("٣", None),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
        ("Wed, 42 Oct 2015 07:28:00 GMT", None),
        ("2026-03-01T12:01:40Z", None),
    ],
)
def test_field_is_read_or_ignored(text: str | None, seconds: float | None) -> None:
    """Digits are seconds, an HTTP date is the time until then or 0, everything else is no wish."""
    assert parse_retry_after(text, NOW) == seconds


@pytest.mark.req("F26")
@given(st.text() | st.text(alphabet="0123456789, :GMTWedOct-+.").map(lambda text: text + " GMT"))
def test_no_text_raises(text: str) -> None:
    """Whatever the field holds, the result is None or a finite number of seconds from 0 on."""
    seconds = parse_retry_after(text, NOW)
    assert seconds is None or 0 <= seconds < 1e19
