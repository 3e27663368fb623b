"""Writes a history while it happens: a line when an operation begins, and one when its answer has come.

Each line leaves with one write to a file opened for appending, so that several processes may share a file and a killed
one leaves whole lines behind. The end of a killed operation stays unknown, which is what the checker must be told.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from orbit.history.operations import Operation

MODE: Final = 0o600
OperationT = TypeVar("OperationT", bound=Operation)


class HistoryRecorder:
    """Appends operations of one process to a history file; close it, or use it as a context manager.

    Args:
        path: made if it is missing; readable by its owner only.
        process: who acts, for instance a worker's name.
    """

    def __init__(self, path: Path, *, process: str) -> None:
        self.process = process
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)

    def begin(self, kind: type[OperationT], **members: Any) -> OperationT:
        """Write that an operation begins now, and return it to hand it to `end`."""
        operation = kind(id=uuid.uuid4().hex, process=self.process, begin=datetime.now(UTC), **members)
        self._write(operation)
        return operation

    def end(self, operation: OperationT, **members: Any) -> OperationT:
        """Write that its answer has come, with what the answer said."""
        known = {name: getattr(operation, name) for name in operation.model_fields_set}
        ended = type(operation).model_validate(known | members | {"end": datetime.now(UTC)})
        self._write(ended)
        return ended

    def note(self, kind: type[OperationT], *, begin: datetime, **members: Any) -> OperationT:
        """Write an operation that began earlier and has ended now, in one line.

        Args:
            begin: no later than its effect can have been; a lease, for instance, is given 30 s before its deadline.
        """
        operation = kind(id=uuid.uuid4().hex, process=self.process, begin=begin, end=datetime.now(UTC), **members)
        self._write(operation)
        return operation

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, operation: Operation) -> None:
        # `op` has a default and must be written nevertheless: it names the kind.
        line = operation.model_dump_json(exclude_none=True) + "\n"
        _ = os.write(self._file, line.encode("utf-8", "surrogatepass"))
