"""`orbit events verify` and `orbit events export`: hold a recorded history against what this document promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import psycopg
import typer

from orbit.cli.databases import command_dsn
from orbit.cli.exit_codes import ExitCode
from orbit.cli.options import DsnOption, JsonOption
from orbit.history.checker import check_history
from orbit.history.exporting import export_history
from orbit.history.reading import HistoryUnreadable, read_history
from orbit.history.verdict import Invariant, Verdict
from seapost.cli.output import Block, Fields, Output, Table
from seapost.model.errors import SeapostError

HistoryArgument = Annotated[
    list[Path], typer.Argument(metavar="HISTORY...", help="Files that clients, `orbit demo` or `events export` wrote.")
]


def verify(history: HistoryArgument, as_json: JsonOption = False) -> ExitCode:
    """Check histories against every invariant; several files are one history.

    The exit code is 7 when a promise is broken; the first violations of each are shown. A promise that was held against
    nothing is marked, because it is no proof.
    """
    output = Output(as_json=as_json)
    try:
        with output.progress("checking the history"):
            verdict = check_history(read_history(*history))
    except HistoryUnreadable as error:
        raise SeapostError(str(error)) from None
    output.emit(verdict_document(verdict), *_blocks(verdict))
    return ExitCode.DONE if verdict.holds else ExitCode.CHECK_FAILED


def export(
    history: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="New file; one that exists is never written over.")
    ],
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="N", help="Only this namespace; by default all.")
    ] = None,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write what the database says into a history file, for `orbit events verify`.

    Digests stand for results; neither secrets nor results leave the database.
    """
    output = Output(as_json=as_json)
    with psycopg.connect(command_dsn(dsn)) as connection, output.progress("exporting"):
        lines = export_history(connection, history, namespace=namespace)
    output.emit({"history": history, "lines": lines}, f"{lines} lines in {history}")
    return ExitCode.DONE


def verdict_document(verdict: Verdict) -> dict[str, object]:
    """A verdict for a program."""
    return {
        "holds": verdict.holds,
        "lines": verdict.lines,
        "open_operations": verdict.open_operations,
        "invariants": [
            {
                "invariant": one,
                "promise": one.promise,
                "checked": verdict.checked[one],
                "violations": verdict.found[one],
            }
            for one in Invariant
        ],
        "violations": [
            {"invariant": one.invariant, "subject": one.subject, "detail": one.detail} for one in verdict.violations
        ],
    }


def _blocks(verdict: Verdict) -> list[Block]:
    rows = [(one, verdict.checked[one] or "nothing", verdict.found[one], one.promise) for one in Invariant]
    blocks: list[Block] = [
        Fields({"lines": verdict.lines, "operations without an end": verdict.open_operations}),
        "",
        Table(("invariant", "held against", "violations", "promise"), rows),
    ]
    if verdict.violations:
        found = [(one.invariant, one.subject, one.detail) for one in verdict.violations]
        blocks += ["", Table(("broken", "subject", "what"), found)]
    blocks += ["", "the history holds" if verdict.holds else "the history is broken"]
    return blocks
