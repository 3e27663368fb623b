"""`seapost contracts`: publish the contracts for other languages, and check the published vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load_application
from seapost.cli.options import JsonOption
from seapost.cli.output import Output, Table
from seapost.contracts.contract_set import ContractSet, kernel_contracts
from seapost.contracts.goldens import verify_goldens
from seapost.contracts.schema_export import export_json_schema
from seapost.contracts.typescript_export import export_typescript

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app", metavar="APP", help="module:attribute of an Application, whose events and receipts are added."
    ),
]

app = typer.Typer(help="Export the contracts and check their published vectors.", no_args_is_help=True)


@app.command()
def export(
    json_schema: Annotated[
        Path | None, typer.Option("--json-schema", metavar="DIR", help="Write one JSON Schema file per contract here.")
    ] = None,
    typescript: Annotated[
        Path | None, typer.Option("--typescript", metavar="DIR", help="Write TypeScript declarations here.")
    ] = None,
    application: AppOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write JSON Schema and TypeScript from the same classes that read and write at run time."""
    if json_schema is None and typescript is None:
        raise typer.BadParameter("Name --json-schema DIR, --typescript DIR or both.")
    known = _contracts(application)
    written: list[Path] = []
    if json_schema is not None:
        written += export_json_schema(json_schema, known)
    if typescript is not None:
        written.append(export_typescript(typescript, known))
    Output(as_json=as_json).emit({"files": written}, *(str(path) for path in written))
    return ExitCode.DONE


@app.command()
def verify(as_json: JsonOption = False) -> ExitCode:
    """Check that this release agrees with every published vector, byte for byte."""
    output = Output(as_json=as_json)
    with output.progress("checking vectors"):
        results = verify_goldens()
    broken = [result for result in results if result.problem is not None]
    output.emit(
        {
            "checked": len(results),
            "problems": [{"type": one.title, "case": one.case, "problem": one.problem} for one in broken],
        },
        *(
            [Table(("type", "case", "problem"), [(one.title, one.case, one.problem) for one in broken])]
            if broken
            else []
        ),
        f"{len(results) - len(broken)} of {len(results)} vectors agree",
    )
    return ExitCode.DONE if results and not broken else ExitCode.CHECK_FAILED


def _contracts(application: str | None) -> ContractSet:
    if application is None:
        return kernel_contracts()
    loaded = load_application(application)
    return kernel_contracts(loaded.receipts, loaded.events)
