"""`orbit migrate`: bring a database to this release, look at its history, and settle a step that stopped (OPS-02)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from orbit.cli.exit_codes import ExitCode
from orbit.cli.options import DsnOption, JsonOption, dsn_of
from orbit.store import migrations
from orbit.store.migrations import MigrationState, MigrationStatus, Resolution
from seapost.cli.output import Fields, Output, Table
from seapost.database.pool import redact_dsn

app = typer.Typer(help="Create and upgrade the schema, and look at its history.", no_args_is_help=True)


@app.command("up")
def up(
    allow_active_writers: Annotated[
        bool, typer.Option("--allow-active-writers", help="Go on although `orbit serve` is connected.")
    ] = False,
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Apply what is missing; running it again changes nothing.

    Stop the write nodes of the old version first: the command refuses (exit code 3) while connections of `orbit serve`
    exist. It refuses as well when a migration stopped half-way (4), and when the history of the database is not that of
    these files (5). Each migration is one transaction.
    """
    output = Output(as_json=as_json)
    address = dsn_of(dsn)
    with output.progress("migrating"):
        report = migrations.up(address, allow_active_writers=allow_active_writers)
    document = {
        "database": redact_dsn(address),
        "changed": report.changed,
        "version_before": report.number_before,
        "version_after": report.number_after,
        "steps": [step.title for step in report.plan.steps()],
    }
    output.emit(document, report.to_text())
    return ExitCode.DONE


@app.command("status")
def status(dsn: DsnOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show one line per migration: version, name, state and checksum.

    States: applied, pending, dirty (stopped half-way), changed (the file is another one), unknown (not in these files).
    """
    found = migrations.status(dsn_of(dsn))
    Output(as_json=as_json).emit(
        {"migrations": [asdict(one) for one in found]},
        Table(
            ("version", "name", "state", "checksum"),
            [(f"{one.version:06d}", one.name, one.state, one.checksum) for one in found],
        ),
    )
    return ExitCode.DONE


@app.command("verify")
def verify(dsn: DsnOption = None, as_json: JsonOption = False) -> ExitCode:
    """Compare the database with the files; the exit code is 0 only if all agrees and nothing is dirty.

    Otherwise it is 4 for a migration that stopped half-way, 5 for another history, 7 for what `orbit migrate up` would
    still do.
    """
    address = dsn_of(dsn)
    faults = migrations.verify(address)
    Output(as_json=as_json).emit(
        {"verified": not faults, "faults": faults}, "\n".join(faults) or "the database is that of this release"
    )
    return _verdict(migrations.status(address)) if faults else ExitCode.DONE


@app.command("resolve")
def resolve(
    version: Annotated[int, typer.Option("--version", min=1, metavar="N", help="Version of the dirty migration.")],
    state: Annotated[
        Resolution, typer.Option("--state", help="applied: its objects are there; reverted: none of them is.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why you know; kept in the database.")],
    dsn: DsnOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Settle a migration that stopped half-way, after you have looked at what it left."""
    migrations.resolve(dsn_of(dsn), version=version, state=state, reason=reason)
    document = {"version": version, "state": state, "reason": reason}
    Output(as_json=as_json).emit(document, Fields(document))
    return ExitCode.DONE


def _verdict(found: list[MigrationStatus]) -> ExitCode:
    """The exit code for a database that differs."""
    if any(one.state is MigrationState.DIRTY for one in found):
        return ExitCode.DIRTY
    newest = max((one.version for one in found if one.state is not MigrationState.PENDING), default=0)
    for one in found:
        gap = one.state is MigrationState.PENDING and one.version < newest
        if gap or one.state in {MigrationState.CHANGED, MigrationState.UNKNOWN}:
            return ExitCode.HISTORY
    return ExitCode.CHECK_FAILED
