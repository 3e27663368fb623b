"""`oceanway init`: from nothing to five databases, their roles, the active release and a key for each workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption
from seapost.cli.output import Output, Table


@dataclass(frozen=True, slots=True)
class Step:
    """What `init` did with one thing."""

    what: str
    result: str


def init(
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="DSN",
            help="Server to make the five databases on, as a superuser. A password belongs into PGPASSWORD.",
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="NAME", help="What the names of databases made here begin with.")
    ] = "oceanway",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Prepare the five databases and everything that their processes trust each other by; twice changes nothing.

    With --server the databases are made where they are missing, and the settings file is written unless there is one.
    Without it, the databases are those of the settings file, and the connection strings there may create roles.
    """
    from oceanway.cli import installing  # noqa: PLC0415 - needs every schema, for this command alone
    from oceanway.installation.settings import DEFAULT_FILE  # noqa: PLC0415 - as above

    file = (config or Path(DEFAULT_FILE)).absolute()
    output = Output(as_json=as_json)
    with output.progress("preparing the databases"):
        steps = [Step(what, result) for what, result in installing.prepare(file, server=server, prefix=prefix)]
    document = {"config": str(file), "steps": [{"what": one.what, "result": one.result} for one in steps]}
    output.emit(document, Table(("what", "result"), [(one.what, one.result) for one in steps]))
    return ExitCode.DONE
