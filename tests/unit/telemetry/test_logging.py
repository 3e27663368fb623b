"""Log records are one line of JSON each, bounded, and free of payloads and secrets."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seapost.telemetry import logging
from seapost.telemetry.catalog import LogEvent

_log = logging.get_logger("seapost.test")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Collect the records of one test."""
    collected = io.StringIO()
    logging.configure(stream=collected)
    yield collected
    logging.configure()


def only(stream: io.StringIO) -> dict[str, Any]:
    """The one record that was written."""
    (line,) = stream.getvalue().splitlines()
    return json.loads(line)


@pytest.mark.req("RTY-05")
def test_record_is_a_line_with_time_level_event_and_fields(stream: io.StringIO) -> None:
    """A record carries its time in UTC, level, event name, logger and fields."""
    _log.info(LogEvent.DISPATCHER_STARTED, destination="billing", deliveries=3, event_id=UUID(int=5))
    record = only(stream)
    assert record.pop("at").endswith("Z")
    assert record == {
        "level": "info",
        "event": "dispatcher.started",
        "logger": "seapost.test",
        "destination": "billing",
        "deliveries": 3,
        "event_id": "00000000-0000-0000-0000-000000000005",
    }


@pytest.mark.req("SEC-17")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.recursive(st.text() | st.binary() | st.floats() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
def test_every_value_stays_one_ascii_line(stream: io.StringIO, value: object) -> None:
    """Whatever a field holds, the record is one line of printable ASCII that JSON reads back."""
    stream.seek(0)
    stream.truncate()
    _log.warning(LogEvent.EVENT_REFUSED, value=value)
    text = stream.getvalue()
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    assert text.isascii()
    assert json.loads(text)["event"] == "inbox.event_refused"


@pytest.mark.req("SEC-17", "RTY-05")
def test_payloads_and_secrets_are_withheld(stream: io.StringIO) -> None:
    """Fields that carry payloads or secrets are withheld at any depth, and bytes always."""
    _log.error(
        LogEvent.REQUEST_FAILED,
        payload={"name": "Ada"},
        Authorization="Bearer abc",
        dsn="password=hunter2",
        inner={"token": "abc", "deep": [{"password": "hunter2"}]},
        body=b"Ada",
        raw=b"Ada",
        error_object=ValueError("Ada"),
        thing=object(),
    )
    text = stream.getvalue()
    for secret in ("Ada", "abc", "hunter2"):
        assert secret not in text
    assert only(stream)["error_object"] == "builtins.ValueError"


@pytest.mark.req("SEC-17", "REF-07")
def test_exceptions_are_described_without_their_messages(stream: io.StringIO) -> None:
    """An exception and its causes appear by type and place; their messages do not appear."""
    try:
        try:
            raise KeyError("Ada")
        except KeyError as error:
            raise RuntimeError("Ada again") from error
    except RuntimeError:
        _log.exception(LogEvent.HANDLER_FAILED)
    record = only(stream)
    assert [entry["type"] for entry in record["error"]] == ["builtins.RuntimeError", "builtins.KeyError"]
    assert "test_exceptions_are_described_without_their_messages" in record["error"][0]["frames"][-1]
    assert "Ada" not in stream.getvalue()


def test_records_are_bounded(stream: io.StringIO) -> None:
    """Long texts, many fields and deep structures are cut."""
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    _log.info(LogEvent.SERVER_STARTED, text="x" * 100_000, many=list(range(10_000)), deep=deep)
    assert len(stream.getvalue()) < 5_000


def test_levels_are_kept(stream: io.StringIO) -> None:
    """Records below the configured level are not written, and a level that does not exist is refused."""
    _log.debug(LogEvent.SERVER_STARTED)
    assert stream.getvalue() == ""
    logging.configure("error", stream)
    _log.warning(LogEvent.SERVER_STARTED)
    assert stream.getvalue() == ""
    logging.configure("debug", stream)
    _log.debug(LogEvent.SERVER_STARTED)
    assert only(stream)["level"] == "debug"
    with pytest.raises(ValueError, match="log level"):
        logging.configure("loud")


def test_references_are_opaque_and_fit_the_database() -> None:
    """A reference is random and has the form that the attempt's column takes."""
    first, second = logging.new_reference(), logging.new_reference()
    assert first != second
    assert first.isalnum()
    assert len(first) == 32
