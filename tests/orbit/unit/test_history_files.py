"""The files of a history: what a recorder writes, what a reader takes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbit.history.operations import LINE, Aged, Claim, Confirm, Switch, digest_of
from orbit.history.reading import HistoryUnreadable, read_history
from orbit.history.recorder import HistoryRecorder
from tests.kit.orbit.histories import at, clean_history


def test_what_a_recorder_wrote_is_read_again(tmp_path: Path) -> None:
    """Begin and end of one operation are one operation, and a begin without an end is an open one."""
    path = tmp_path / "history.jsonl"
    with HistoryRecorder(path, process="w-1") as recorder:
        done = recorder.begin(Confirm, task="task_1", attempt="att_1")
        recorder.begin(Confirm, task="task_2", attempt="att_2")
        recorder.end(done, event="evt_1", event_type="task.succeeded", sequence=1, receipt=digest_of("receipt"))
        recorder.end(recorder.begin(Switch, op="pause", subscription="sub_1"))
    assert path.stat().st_mode & 0o777 == 0o600
    history = read_history(path)
    assert [(each.task, each.sequence) for each in history.confirms] == [("task_1", 1), ("task_2", None)]
    assert history.confirms[0].end is not None
    assert history.confirms[0].begin <= history.confirms[0].end
    assert [each.op for each in history.switches] == ["pause"]
    assert (history.open_operations, history.lines) == (1, 3)


def test_lines_survive_being_written_and_read() -> None:
    """Every kind of line of the clean history means the same after a file."""
    lines = clean_history()
    assert [LINE.validate_json(line.model_dump_json()) for line in lines] == lines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "line 2: line: Invalid JSON"),
        ('{"op":"teleport"}', "line 2"),
        ('{"op":"aged","id":"a","process":"p","begin":"2026-01-05T08:30:00Z","delivery":"d","more":1}', "aged.more"),
        ('{"op":"ack","id":"a","process":"p","begin":"2026-01-05T08:30:00Z","delivery":"d"}', "subscription"),
    ],
)
def test_a_file_that_is_no_history_is_refused_by_line_and_member(tmp_path: Path, text: str, said: str) -> None:
    """An unknown member would not be checked, so it is not passed over; contents are not repeated."""
    path = tmp_path / "history.jsonl"
    first = Aged(id="a", process="p", begin=at(0), delivery="d").model_dump_json()
    path.write_text(f"{first}\n{text}\n", encoding="utf-8")
    with pytest.raises(HistoryUnreadable, match=said):
        read_history(path)


def test_a_digest_in_a_history_is_not_the_one_that_the_database_compares() -> None:
    """Whoever reads a history learns nothing that could be sent as a proof."""
    assert digest_of("secret") != digest_of("secret2")
    assert len(digest_of("\ud800")) == 32


def test_what_was_seen_only_at_its_end_is_one_line(tmp_path: Path) -> None:
    """A lease, for instance: its begin is the deadline less 30 seconds, its end is now."""
    path = tmp_path / "history.jsonl"
    with HistoryRecorder(path, process="s-1") as recorder:
        recorder.note(Claim, begin=at(0), subscription="sub_1", connection="s-1")
    (claim,) = read_history(path).claims
    assert claim.begin == at(0)
    assert claim.end is not None
    assert claim.end > at(0)
