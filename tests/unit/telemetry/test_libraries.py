"""What the database driver logs becomes a record of our own form, without its text."""

from __future__ import annotations

import io
import json
import logging as standard
from collections.abc import Iterator

import pytest

from seapost.telemetry import logging
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.libraries import LIBRARIES, adopt_library_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Collect records, and give the libraries' loggers back as they were."""
    before = {name: (standard.getLogger(name).handlers[:], standard.getLogger(name).propagate) for name in LIBRARIES}
    collected = io.StringIO()
    logging.configure(stream=collected)
    yield collected
    logging.configure()
    for name, (handlers, propagate) in before.items():
        standard.getLogger(name).handlers[:] = handlers
        standard.getLogger(name).propagate = propagate


@pytest.mark.req("SEC-17", "RTY-05")
def test_a_librarys_warning_is_one_line_without_its_text(stream: io.StringIO) -> None:
    """The place is kept and the message, which may quote a connection string, is not; adopting twice writes once."""
    adopt_library_logs()
    adopt_library_logs()
    standard.getLogger("psycopg.pool").warning("discarding %s", "postgresql://user:hunter2@host/db")
    standard.getLogger("psycopg.pool").info("nothing to see")

    (line,) = stream.getvalue().splitlines()
    record = json.loads(line)
    assert record["event"] == LogEvent.LIBRARY_WARNING
    assert record["library"] == "psycopg.pool"
    assert record["place"].startswith("test_libraries:")
    assert "hunter2" not in line


def test_a_librarys_error_keeps_the_exceptions_type(stream: io.StringIO) -> None:
    """An exception is shown by type and place, as everywhere."""
    adopt_library_logs()
    try:
        raise OSError("secret")
    except OSError:
        standard.getLogger("psycopg").exception("connection lost")

    record = json.loads(stream.getvalue())
    assert record["event"] == LogEvent.LIBRARY_ERROR
    assert record["error"][0]["type"] == "builtins.OSError"
    assert "secret" not in stream.getvalue()
