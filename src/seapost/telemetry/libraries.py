"""Log records of the libraries we run on, as records of our own form.

In a worker process every line on standard error is one JSON object, so that a collector can read it. Libraries log free
text, which may quote connection strings; of theirs only the logger, the level and the place in the code are kept.
"""

from __future__ import annotations

import logging
from typing import Final

from typing_extensions import override

from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

LIBRARIES: Final = ("psycopg", "psycopg.pool")


class _Adopting(logging.Handler):
    """Writes each record of a library as `library.warning` or `library.error`."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logger = get_logger("seapost.libraries")

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Keep where it happened, not what it says."""
        place = f"{record.module}:{record.funcName}:{record.lineno}"
        error = record.exc_info[1] if record.exc_info else None
        if record.levelno >= logging.ERROR:
            self._logger.error(LogEvent.LIBRARY_ERROR, library=record.name, place=place, exc_info=error)
        else:
            self._logger.warning(LogEvent.LIBRARY_WARNING, library=record.name, place=place, exc_info=error)


def adopt_library_logs() -> None:
    """Write warnings and errors of the database driver and its pool in our form; for worker processes only."""
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        if not any(isinstance(handler, _Adopting) for handler in logger.handlers):
            logger.addHandler(_Adopting())
