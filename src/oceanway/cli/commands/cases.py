"""`oceanway case` and `oceanway late`: the decisions that operators take.

Everything is asked by an exact identifier. The commands decide nothing about money: they write the chain of decisions,
and its last step leaves a signed grant in a file for the gateway that presents it to billing.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption
from oceanway.installation.layout import Database, Kind, process_of
from oceanway.installation.settings import load_settings
from seapost.cli.output import Fields, Output

if TYPE_CHECKING:
    from collections.abc import Generator

    from psycopg import Connection

    from oceanway.contracts.facts.resolution import InvestigationEvidenceReference

CaseArgument = Annotated[str, typer.Argument(metavar="CASE", help="Exact reference of the case.")]
KeyOption = Annotated[Path, typer.Option("--key", metavar="FILE", help="Private key of operations, PEM.")]
WorkloadOption = Annotated[
    str, typer.Option("--workload", help="Workload that will present the command, subject of its own token.")
]
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="New file for the grant, for its owner alone.")]
ActorOption = Annotated[str, typer.Option("--actor", help="Workforce principal who acts.")]

case_app = typer.Typer(name="case", help="Finalization cases: show, request, approve, resolve.", no_args_is_help=True)
late_app = typer.Typer(name="late", help="Late cases: show, request, approve, grant.", no_args_is_help=True)


@case_app.command("preview")
def case_preview(case_ref: CaseArgument, config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show a case, and what its resolution would set in motion."""
    from oceanway.operations import commands  # noqa: PLC0415 - for this command alone

    with _session(config) as connection:
        shown = asdict(commands.preview(connection, case_ref))
    Output(as_json=as_json).emit(shown, Fields(shown))
    return ExitCode.DONE


@case_app.command("request")
def case_request(
    case_ref: CaseArgument,
    actor: ActorOption,
    reference: Annotated[
        list[str], typer.Option("--reference", metavar="TYPE:REFERENCE", help="Where it was investigated; repeatable.")
    ],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Ask for an open case to be evaluated again."""
    from oceanway.operations import commands  # noqa: PLC0415 - for this command alone

    with _session(config) as connection:
        made = commands.request_resolution(connection, case_ref, actor=actor, references=_references(reference))
    return _done(made.quad().ref, as_json=as_json)


@case_app.command("approve")
def case_approve(
    case_ref: CaseArgument,
    actor: ActorOption,
    seen: Annotated[str, typer.Option("--seen", help="Digest of the decision that the preview showed.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Approve a request, as somebody else than who asked."""
    from oceanway.operations import commands  # noqa: PLC0415 - for this command alone

    with _session(config) as connection:
        decision = commands.preview(connection, case_ref).decision
        if decision.digest != seen:
            raise typer.BadParameter("the case is about another decision now", param_hint="--seen")
        made = commands.approve(connection, case_ref, approver=actor, seen=decision)
    return _done(made.quad().ref, as_json=as_json)


@case_app.command("resolve")
def case_resolve(
    case_ref: CaseArgument,
    key: KeyOption,
    workload: WorkloadOption,
    out: OutOption,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Decide for an approved request and write its grant, with the documents that it names, to a new file."""
    from oceanway.operations import commands  # noqa: PLC0415 - for this command alone

    with _session(config) as connection:
        _ = commands.prepare_candidate(connection, case_ref)
        _ = commands.decide(connection, case_ref, verdict="granted")
        granted = commands.mint_grant(connection, case_ref, key=_key(key), bound_workload=workload)
    documents = {
        "request": granted.request.to_json(),
        "candidate": granted.candidate.to_json(),
        "decision": granted.decision.to_json(),
        "grant": granted.token,
    }
    _write(out, documents)
    return _done(granted.grant.quad().ref, as_json=as_json)


@late_app.command("request")
def late_request(
    case_ref: CaseArgument,
    action: Annotated[str, typer.Argument(metavar="charge|waive")],
    actor: ActorOption,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Ask for the open exposure of a late case to be charged or waived."""
    from oceanway.operations import commands_late  # noqa: PLC0415 - for this command alone

    if action != "charge" and action != "waive":  # noqa: PLR1714 - narrows the type
        raise typer.BadParameter("charge or waive", param_hint="action")
    with _session(config) as connection:
        made = commands_late.request_command(connection, case_ref, action=action, actor=actor)
    return _done(made.quad().ref, as_json=as_json)


@late_app.command("approve")
def late_approve(
    case_ref: CaseArgument, actor: ActorOption, config: ConfigOption = None, as_json: JsonOption = False
) -> ExitCode:
    """Approve a late command, as somebody else than who asked."""
    from oceanway.operations import commands_late  # noqa: PLC0415 - for this command alone

    with _session(config) as connection:
        made = commands_late.approve(connection, case_ref, approver=actor)
    return _done(made.quad().ref, as_json=as_json)


@late_app.command("grant")
def late_grant(
    case_ref: CaseArgument,
    key: KeyOption,
    workload: WorkloadOption,
    out: OutOption,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write the grant of an approved late command, with the command, to a new file."""
    from oceanway.operations import commands_late  # noqa: PLC0415 - for this command alone

    with _session(config) as connection:
        granted = commands_late.mint_grant(connection, case_ref, key=_key(key), bound_workload=workload)
    _write(out, {"command": granted.command.to_json(), "grant": granted.token})
    return _done(granted.grant.quad().ref, as_json=as_json)


@contextmanager
def _session(config: Path | None) -> Generator[Connection[Any]]:
    """One transaction of the role that decides and queries."""
    import psycopg  # noqa: PLC0415 - for these commands alone

    from seapost.database.pool import part_dsn  # noqa: PLC0415 - as above

    settings = load_settings(config)
    dsn = settings.process_dsn(process_of(Kind.DRIVE, Database.CORE.value))
    with psycopg.connect(part_dsn(dsn, "operator", program="oceanway")) as connection:
        yield connection


def _references(stated: list[str]) -> list[InvestigationEvidenceReference]:
    from oceanway.contracts.facts.resolution import InvestigationEvidenceReference as Reference  # noqa: PLC0415

    pairs = sorted(one.partition(":")[::2] for one in stated)
    return [
        Reference(reference_type=kind, reference_schema_version="1", reference=reference)  # pyright: ignore[reportArgumentType] - checked by the contract
        for kind, reference in pairs
    ]


def _key(path: Path) -> Any:  # noqa: ANN401 - a private key
    from seapost.transport.token import load_private_key  # noqa: PLC0415 - for grants alone

    return load_private_key(path.read_bytes())


def _write(path: Path, documents: dict[str, Any]) -> None:
    """Write a file that did not exist, readable for its owner alone: a grant is a secret while it lasts."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(documents, file)


def _done(reference: str, *, as_json: bool) -> ExitCode:
    Output(as_json=as_json).emit({"reference": reference}, Fields({"reference": reference}))
    return ExitCode.DONE
