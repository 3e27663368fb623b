"""What a command shows: tables and lines for people, one JSON document per answer for machines.

Results go to standard output, everything else (errors, notes, progress, logs) to standard error, so that `--json`
leaves pure JSON behind. Whatever comes from a database or a peer is printed inert: control characters, terminal
sequences and direction marks are escaped, so that a producer's data cannot act in an operator's terminal (F88).
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Final, Protocol, cast
from uuid import UUID

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from seapost.model.errors import SeapostError

_INERT_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, format characters (direction marks among them), lone surrogates, line and paragraph separators."""

NOTHING: Final = "-"


class StdoutClosed(Exception):
    """Whoever read our standard output has had enough."""


class OutputLost(SeapostError):
    """The result could not be written to standard output."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings, for people."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """One record, a name and a value per line, for people."""

    values: Mapping[str, object]


Block = str | Table | Fields


class Advance(Protocol):
    """Moves a progress bar on."""

    def __call__(self, steps: int = 1) -> None:
        """Count some steps as done."""
        ...


class _Bar:
    """A bar on a terminal; `total` says later how much there is to do."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def __call__(self, steps: int = 1) -> None:
        """Count some steps as done."""
        self._progress.advance(self._task, steps)

    def total(self, steps: int) -> None:
        """Say how many steps there are."""
        self._progress.update(self._task, total=steps)


class _NoBar:
    """Where nobody looks."""

    def __call__(self, steps: int = 1) -> None:
        """Count nothing."""

    def total(self, steps: int) -> None:
        """Note nothing."""


def inert(text: str) -> str:
    """The text with everything escaped that is not simply seen, as JSON would: ESC, line ends, direction marks."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(character) if unicodedata.category(character) in _INERT_CATEGORIES else character for character in text
    )


def _escaped(character: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    if short is not None:
        return short
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004 - end of the basic plane


def spoken(value: object) -> str:
    """One value as a person reads it, inert and on one line."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
        case list() | tuple():
            return ", ".join(spoken(item) for item in cast("Sequence[object]", value)) or NOTHING
        case bytes():
            return value.hex()
        case Enum():
            return inert(str(value.value))
        case _:
            return inert(str(value))


def to_json(document: object) -> str:
    """The document as one line of ASCII JSON: nothing in it can act on a terminal either."""
    return json.dumps(document, default=_plain, allow_nan=False)


def _plain(value: object) -> object:
    """A value of ours as a JSON value."""
    match value:
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        case date():
            return value.isoformat()
        case UUID() | PurePath():
            return str(value)
        case bytes():
            return value.hex()
        case Enum():
            return value.value
        case int() | float() | str():
            return value
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")


class Output:
    """Where one command writes.

    Args:
        as_json: machine form; set by `--json`.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at standard output."""
        return sys.stdout.isatty()

    def emit(self, document: object, *blocks: Block) -> None:
        """Write one answer: the document for a machine, the blocks for a person.

        Raises:
            StdoutClosed: nobody reads any more.
            OutputLost: the answer could not be written.
        """
        text = to_json(document) + "\n" if self.as_json else "".join(rendered(block) for block in blocks)
        write_stdout(text)

    def note(self, text: str) -> None:
        """Write a remark to standard error; in machine form as well, where it disturbs nobody."""
        write_stderr(text)

    def quiet(self) -> AbstractContextManager[Advance]:
        """No progress, for work too short to watch."""
        return nullcontext(_NoBar())

    @contextmanager
    def progress(self, description: str, total: int | None = None) -> Generator[_Bar | _NoBar]:
        """A bar with the time left (or, without a total, a spinner) on standard error; only on a terminal."""
        if not sys.stderr.isatty():
            yield _NoBar()
            return
        parts = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
        counted = () if total is None else (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*parts, *counted, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(inert(description), total=total)
            yield _Bar(progress, task)


def write_stdout(text: str) -> None:
    """Write and flush, so that a failure is known before the command says it is done."""
    try:
        _ = sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise StdoutClosed from None
    except UnicodeEncodeError as error:
        raise OutputLost(detail=f"this terminal's encoding {error.encoding} cannot show it; use --json") from None
    except OSError as error:
        raise OutputLost(detail=error.strerror or type(error).__name__) from None


def write_stderr(text: str) -> None:
    """Write one remark, inert and on one line; a closed standard error is nobody's concern."""
    with suppress(OSError, ValueError):
        print(inert(text), file=sys.stderr, flush=True)  # noqa: T201 - this is where text leaves


def rendered(block: Block) -> str:
    """A block as text, with its line ends."""
    match block:
        case str():
            return "".join(f"{inert(line)}\n" for line in block.splitlines() or [""])
        case Fields():
            width = max((len(name) for name in block.values), default=0)
            return "".join(f"{name:<{width}}  {spoken(value)}\n" for name, value in block.values.items())
        case Table():
            rows = [[spoken(value) for value in row] for row in block.rows]
            return _for_terminal(block, rows) if sys.stdout.isatty() else _for_pipe(block, rows)


def _for_pipe(table: Table, rows: list[list[str]]) -> str:
    """Aligned columns that are never cut or folded: for grep and awk."""
    lines = [list(table.columns), *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.columns))]
    text = "" if table.title is None else f"{inert(table.title)}\n"
    for line in lines:
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        text += "  ".join(cells).rstrip() + "\n"
    return text


def _for_terminal(table: Table, rows: list[list[str]]) -> str:
    console = Console(markup=False, highlight=False, emoji=False)
    title = None if table.title is None else Text(inert(table.title))
    shown = RichTable(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in table.columns:
        shown.add_column(Text(column), overflow="fold", min_width=len(column))
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    with console.capture() as captured:
        console.print(shown)
    return captured.get()
