"""Structured logs: one JSON object per line on standard error, without payloads and secrets (RTY-05, SEC-17).

The loggers are Seapost's own and leave the host application's logging alone. Whatever a value holds, a
record stays one line of ASCII: control characters, line separators and terminal sequences are escaped.

Exceptions are described by type and place only. Their messages may quote a row, a payload or a password,
so they are never written; `describe_error` gives what is safe.
"""

from __future__ import annotations

import json
import secrets
import sys
import traceback
from collections.abc import Iterable, Mapping, MutableMapping
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from types import TracebackType
from typing import Any, Final, NamedTuple, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger, WrappedLogger

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
TEXT_LENGTH_MAX: Final = 2_000
FIELDS_MAX: Final = 50
FRAMES_MAX: Final = 20
CAUSES_MAX: Final = 5
DEPTH_MAX: Final = 4
WITHHELD: Final = "(withheld)"

_SHOWN_MODULES: Final = frozenset({"datetime", "decimal", "enum", "ipaddress", "uuid"})
_SECRET_FIELDS: Final = frozenset(
    {
        "authorization",
        "body",
        "candidate",
        "dsn",
        "envelope",
        "headers",
        "key",
        "password",
        "payload",
        "private_key",
        "receipt",
        "secret",
        "token",
    }
)


class _Sink(NamedTuple):
    """Where records go and from which level on; replaced as a whole by `configure`."""

    level: int
    stream: TextIO | None


class _Output:
    """Writes lines to the configured stream; one lock keeps records of several threads apart."""

    def __init__(self) -> None:
        self.sink = _Sink(LEVELS["info"], None)
        self._lock = Lock()

    def msg(self, line: str) -> None:
        """Write one record."""
        stream = self.sink.stream or sys.stderr
        with self._lock:
            stream.write(line + "\n")
            stream.flush()

    debug = info = warning = error = critical = exception = msg


_OUTPUT: Final = _Output()


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Set the lowest level that is written (`debug`, `info`, `warning` or `error`) and the stream.

    Without a stream, records go to what `sys.stderr` is at that moment.

    Raises:
        ValueError: the level has another name.
    """
    if level not in LEVELS:
        raise ValueError(f"A log level is one of {', '.join(LEVELS)}, not {level!r}")
    _OUTPUT.sink = _Sink(LEVELS[level], stream)


def get_logger(name: str) -> FilteringBoundLogger:
    """A logger whose records carry `logger: name`; the first argument of its methods is a `LogEvent`."""
    logger: FilteringBoundLogger = structlog.wrap_logger(
        _OUTPUT,
        processors=[_drop_below_level, _compose],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS["debug"]),
    )
    return logger.bind(logger=name)


def new_reference() -> str:
    """A fresh opaque id that ties a stored `sanitized_error_ref` to one log record (REF-07)."""
    return secrets.token_hex(16)


def describe_error(error: BaseException) -> list[dict[str, Any]]:
    """An exception and its causes by type, SQLSTATE and place in the code; never by message."""
    described: list[dict[str, Any]] = []
    current: BaseException | None = error
    while current is not None and len(described) < CAUSES_MAX:
        entry: dict[str, Any] = {"type": f"{type(current).__module__}.{type(current).__qualname__}"}
        sqlstate = getattr(current, "sqlstate", None)
        if isinstance(sqlstate, str):
            entry["sqlstate"] = sqlstate
        entry["frames"] = _frames(current.__traceback__)
        described.append(entry)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return described


def _frames(trace: TracebackType | None) -> list[str]:
    """The innermost places of a traceback as `module:function:line`, outermost first."""
    places = [
        f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_qualname}:{line}"
        if hasattr(frame.f_code, "co_qualname")
        else f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}:{line}"
        for frame, line in traceback.walk_tb(trace)
    ]
    return places[-FRAMES_MAX:]


def _drop_below_level(
    _logger: WrappedLogger, method: str, record: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    if LEVELS.get(method, LEVELS["error"]) < _OUTPUT.sink.level:
        raise structlog.DropEvent
    return record


def _compose(_logger: WrappedLogger, method: str, record: MutableMapping[str, Any]) -> str:
    """The line of one record: time, level, event and logger first, then the fields in their order."""
    event = str(record.pop("event", ""))
    error = record.pop("exc_info", None)
    line: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z",
        "level": method if method in LEVELS else "error",
        "event": _safe(event, 0),
    }
    if isinstance(error, BaseException):
        line["error"] = describe_error(error)
    elif error:
        current = sys.exception()
        if current is not None:
            line["error"] = describe_error(current)
    for name, value in list(record.items())[:FIELDS_MAX]:
        line.setdefault(name, WITHHELD if name.lower() in _SECRET_FIELDS else _safe(value, 0))
    return json.dumps(line, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")


def _safe(value: object, depth: int) -> object:
    """A value that JSON can hold, bounded in size; unknown objects are shown by type only."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)  # noqa: PLR0124 - NaN
    if isinstance(value, bytes | bytearray | memoryview):
        return WITHHELD
    if isinstance(value, BaseException):
        return f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, str) or type(value).__module__ in _SHOWN_MODULES:
        text = str(value)
        return text if len(text) <= TEXT_LENGTH_MAX else text[:TEXT_LENGTH_MAX] + "…"
    if depth < DEPTH_MAX and isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return {
            str(name)[:TEXT_LENGTH_MAX]: WITHHELD if str(name).lower() in _SECRET_FIELDS else _safe(item, depth + 1)
            for name, item in islice(fields.items(), FIELDS_MAX)
        }
    if depth < DEPTH_MAX and isinstance(value, list | tuple | set | frozenset):
        items = cast("Iterable[object]", value)
        return [_safe(item, depth + 1) for item in islice(items, FIELDS_MAX)]
    return f"<{type(value).__qualname__}>"
