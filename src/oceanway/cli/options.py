"""Options that several commands share, so that they are called and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seapost.cli.options import JsonOption

__all__ = ["ConfigOption", "JsonOption", "WaitOption"]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="TOML file with settings; by default oceanway.toml, if there is one."
    ),
]
WaitOption = Annotated[
    float, typer.Option("--wait", min=0, max=3600, help="Longest wait for the database at start, in seconds.")
]
