"""Options and arguments that several commands share, so that they are called and explained alike."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output, and nothing else.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML file with settings; by default seapost.toml, if there is one."),
]
DsnOption = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="DSN",
        help="Database to work on. A password belongs into SEAPOST_DATABASE_DSN or PGPASSWORD, where no list of "
        "processes shows it.",
    ),
]
ConsumerOption = Annotated[
    bool, typer.Option("--consumer", help="Work on the consumer's own database, section \\[consumer], instead.")
]
ActorOption = Annotated[
    str | None,
    typer.Option("--actor", metavar="NAME", help="Who does this, for the audit; by default the system user."),
]
AppArgument = Annotated[
    str, typer.Argument(metavar="APP", help="module:attribute of an Application, for instance shop.events:application.")
]
EventArgument = Annotated[UUID, typer.Argument(metavar="EVENT_ID", help="Id of the event.")]
DestinationArgument = Annotated[str, typer.Argument(metavar="DESTINATION", help="Name of the destination.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Most rows to show.")]


def actor_name(given: str | None) -> str:
    """Who acts: the name given, else the system user; only ever written into the audit."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user-{os.getuid()}"
