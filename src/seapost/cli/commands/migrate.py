"""`seapost migrate`: bring a database to this release; running it again changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from seapost.cli.databases import database_name, direct_dsn_of, dsn_of
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import ConfigOption, ConsumerOption, DsnOption, JsonOption
from seapost.cli.output import Output
from seapost.cli.settings import load_settings
from seapost.database import installer
from seapost.database.installer import GuardLevel, OnDirty

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show the SQL and the locks it would take.")]
PostOption = Annotated[
    bool, typer.Option("--post", help="Also remove what only the previous release needed; run it when none is left.")
]
GuardsOption = Annotated[
    GuardLevel | None,
    typer.Option("--guards", help="Guard level to set: lean (default of a new database) or strict (foreign keys)."),
]
OnDirtyOption = Annotated[
    OnDirty,
    typer.Option("--on-dirty", help="A migration that stopped half-way: refuse, run it again, or call it done."),
]


def migrate(
    dry_run: DryRunOption = False,
    post: PostOption = False,
    guards: GuardsOption = None,
    on_dirty: OnDirtyOption = OnDirty.REFUSE,
    lock_timeout: Annotated[
        float, typer.Option("--lock-timeout", min=0.1, max=3600, help="Longest wait for one lock, in seconds.")
    ] = 5.0,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Create or upgrade the schema: roles, migrations, functions, views, privileges."""
    output = Output(as_json=as_json)
    section = "consumer" if consumer else "database"
    settings = load_settings(file=config, flags={(section, "dsn"): dsn})
    database = settings.consumer if consumer else settings.database
    address = direct_dsn_of(database, section) if dsn is None else dsn_of(database, section)
    with output.progress("comparing the schema" if dry_run else "migrating"):
        report = installer.migrate(
            address,
            dry_run=dry_run,
            post=post,
            guards=guards,
            on_dirty=on_dirty,
            lock_timeout_seconds=lock_timeout,
        )
    output.emit({"database": database_name(address), **report.to_json()}, report.to_text())
    return ExitCode.DONE
