"""`oceanway gate` and `oceanway apply`: whether conflicts may become cases, and grants as billing gets them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption
from oceanway.installation.layout import Database, Kind, process_of
from oceanway.installation.settings import load_settings
from seapost.cli.output import Fields, Output
from seapost.model.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Generator

    from psycopg import Connection

FILE_BYTES_MAX = 1_000_000

ActorOption = Annotated[str, typer.Option("--actor", help="Who decides it.")]

gate_app = typer.Typer(
    name="gate", help="Whether an owner's conflict may become a case: show, open, close.", no_args_is_help=True
)


@gate_app.command("show")
def gate_show(config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show whether the gate is open. A finalization that meets a conflict waits while it is closed."""
    from oceanway.billing import store_finalization as store  # noqa: PLC0415 - for this command alone

    with _billing(config, administrator=True) as connection:
        state = store.read_gate(connection)
    shown = {"enabled": state.enabled, "command_chain": sorted(state.command_chain)}
    Output(as_json=as_json).emit(shown, Fields({"gate": "open" if state.enabled else "closed"}))
    return ExitCode.DONE


@gate_app.command("open")
def gate_open(actor: ActorOption, config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Let conflicts become cases; the whole chain of commands of this release leads out of them.

    Finalization workers take it over at their next start.
    """
    from oceanway.billing.finalization.gate import ROUTES, CommandChain, open_gate  # noqa: PLC0415 - as above

    chain = CommandChain(frozenset(ROUTES), decision_store=True, command_handler=True)
    with _billing(config, administrator=True) as connection:
        open_gate(connection, chain, actor=actor)
    Output(as_json=as_json).emit({"enabled": True}, Fields({"gate": "open"}))
    return ExitCode.DONE


@gate_app.command("close")
def gate_close(actor: ActorOption, config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Let conflicts wait instead of becoming cases. Cases that are open keep their way out."""
    from oceanway.billing.finalization.gate import close_gate  # noqa: PLC0415 - as above

    with _billing(config, administrator=True) as connection:
        close_gate(connection, actor=actor)
    Output(as_json=as_json).emit({"enabled": False}, Fields({"gate": "closed"}))
    return ExitCode.DONE


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Grant that `case resolve` or `late grant` wrote.")],
    key: Annotated[Path, typer.Option("--public-key", metavar="FILE", help="Public key of operations, PEM.")],
    workload: Annotated[str, typer.Option("--workload", help="Workload that the grant is bound to.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Present a grant to billing, which applies it once; presented again, it is answered with the first result."""
    from seapost.transport.token import load_public_key  # noqa: PLC0415 - for this command alone

    documents, keys = _documents(file), [load_public_key(key.read_bytes())]
    with _billing(config) as connection:
        fact = (
            _apply_late(connection, documents, workload, keys)
            if "command" in documents
            else _apply_resolution(connection, documents, workload, keys)
        )
    Output(as_json=as_json).emit(fact.to_json(), Fields({"applied": fact.quad().ref}))
    return ExitCode.DONE


def _apply_resolution(connection: Connection[Any], documents: dict[str, Any], workload: str, keys: list[Any]) -> Any:  # noqa: ANN401
    from oceanway.billing.resolution.command import ResolutionCommand, apply_resolution  # noqa: PLC0415 - as above
    from oceanway.contracts.facts import resolution  # noqa: PLC0415 - as above

    command = ResolutionCommand(
        resolution.FinalizationReconciliationRequest.decode(documents["request"]),
        resolution.FinalizationReconciliationCandidate.decode(documents["candidate"]),
        resolution.FinalizationReconciliationDecision.decode(documents["decision"]),
        documents["grant"],
    )
    return apply_resolution(connection, command, caller=workload, grant_keys=keys)


def _apply_late(connection: Connection[Any], documents: dict[str, Any], workload: str, keys: list[Any]) -> Any:  # noqa: ANN401
    from oceanway.billing.late_commands.command import LateCommand, apply_late_command  # noqa: PLC0415 - as above
    from oceanway.contracts.facts.transitions import LateSettlementCommand  # noqa: PLC0415 - as above

    late = LateCommand(LateSettlementCommand.decode(documents["command"]), documents["grant"])
    return apply_late_command(connection, late, caller=workload, keys=keys)


def _documents(file: Path) -> dict[str, Any]:
    """The documents of a grant file; raise InvalidSetting when it is none."""
    try:
        text = file.read_bytes()
        read: object = json.loads(text) if len(text) <= FILE_BYTES_MAX else None
    except (OSError, ValueError):
        read = None
    documents = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    if set(documents) not in ({"request", "candidate", "decision", "grant"}, {"command", "grant"}):
        raise InvalidSetting(f"{file.name} is no grant that `oceanway case resolve` or `oceanway late grant` wrote.")
    return documents


@contextmanager
def _billing(config: Path | None, *, administrator: bool = False) -> Generator[Connection[Any]]:
    """One transaction in billing's database: as the driving application, or as who installed it."""
    import psycopg  # noqa: PLC0415 - for these commands alone

    from seapost.database.pool import part_dsn  # noqa: PLC0415 - as above

    settings = load_settings(config)
    process = process_of(Kind.DRIVE, Database.BILLING.value)
    dsn = settings.dsn(Database.BILLING) if administrator else settings.process_dsn(process)
    with psycopg.connect(part_dsn(dsn, "operator", program="oceanway")) as connection:
        yield connection
