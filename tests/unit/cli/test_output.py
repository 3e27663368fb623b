"""Output: inert for eyes, pure JSON for machines, and every way in which writing can fail."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from uuid import UUID

import pytest

from seapost.cli.output import Fields, Output, OutputLost, StdoutClosed, Table, inert, spoken, to_json

HOSTILE = "\x1b[2J<img src=x onerror=alert(1)>\r\nfake: record\x9b31m\u202eevil\u2028\x00"


class Colour(StrEnum):
    """A closed value."""

    RED = "red"


@pytest.mark.req("F88")
def test_hostile_text_is_printed_inert() -> None:
    """No control, terminal sequence, line end or direction mark of a value reaches the terminal."""
    shown = inert(HOSTILE)
    assert shown.isprintable()
    assert "\\u001b[2J" in shown
    assert "\\r\\n" in shown
    assert "\\u202e" in shown
    assert "<img src=x" in shown  # for a terminal this is plain text


@pytest.mark.req("F88")
@pytest.mark.parametrize("terminal", [False, True])
def test_every_block_is_inert(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells, fields and lines are escaped alike, on a terminal and in a pipe; markup is not obeyed."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "400")
    output = Output(as_json=False)
    output.emit({}, Table(("name",), [(HOSTILE,)], HOSTILE), Fields({"value": HOSTILE}), "[red]line[/red]")
    output.note(HOSTILE)
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert "\x9b" not in text
        assert "\r" not in text
        assert "\x00" not in text
        assert "\x1b[2J" not in text
    assert "[red]line[/red]" in captured.out
    assert captured.err.count("\n") == 1


@pytest.mark.req("F85", "F88")
def test_json_is_one_ascii_document(capsys: pytest.CaptureFixture[str]) -> None:
    """In machine form standard output is exactly one JSON document of printable ASCII."""
    moment = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    document = {
        "text": HOSTILE,
        "moment": moment,
        "id": UUID(int=7),
        "path": Path("a"),
        "bytes": b"\x00\xff",
        "colour": Colour.RED,
        "nothing": None,
    }
    Output(as_json=True).emit(document, "a line for people")
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.removesuffix("\n").isprintable()
    assert json.loads(out) == {
        "text": HOSTILE,
        "moment": "2026-01-31T10:00:00.000000Z",
        "id": str(UUID(int=7)),
        "path": "a",
        "bytes": "00ff",
        "colour": "red",
        "nothing": None,
    }


def test_what_has_no_json_form_is_a_mistake_of_ours() -> None:
    """Neither an unknown object nor NaN is written as something that only looks like JSON."""
    with pytest.raises(TypeError, match="object"):
        to_json({"a": object()})
    with pytest.raises(ValueError, match="JSON"):
        to_json({"a": float("nan")})


def test_values_are_spoken_for_people() -> None:
    """Nothing is a dash, truth a word, a moment UTC with its Z, a list its items."""
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert [spoken(value) for value in (None, True, False, moment, ["a", 1], (), 3)] == [
        "-",
        "yes",
        "no",
        "2026-01-31 12:00:00.000Z",
        "a, 1",
        "-",
        "3",
    ]


def test_a_pipe_gets_columns_that_are_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """Outside a terminal a long identifier stays on its line, whole, for grep and awk."""
    long = "x" * 300
    Output(as_json=False).emit({}, Table(("id", "n"), [(long, 1), ("y", 22)]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [long, "1"]
    assert len({line.rindex(last) for line, last in zip(lines, ("n", "1", "22"), strict=True)}) == 1


class _Broken(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, _text: str, /) -> int:
        raise self._error


@pytest.mark.req("F85")
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BrokenPipeError(), StdoutClosed),
        (OSError(28, "No space left on device"), OutputLost),
        (UnicodeEncodeError("ascii", "é", 0, 1, "no"), OutputLost),
    ],
)
def test_a_failed_write_is_known(error: Exception, raised: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that left is told from a result that was lost."""
    monkeypatch.setattr(sys, "stdout", _Broken(error))
    with pytest.raises(raised):
        Output(as_json=True).emit({})


def test_there_is_no_progress_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A log file gets no half-drawn bars."""
    with Output(as_json=False).progress("working", total=2) as advance:
        advance()
    assert capsys.readouterr() == ("", "")
