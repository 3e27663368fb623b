"""`seapost init`: from nothing to a database with the schema, a settings file and a key pair; twice changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from psycopg import conninfo

from seapost.cli.databases import database_name, direct_dsn_of, dsn_of
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import JsonOption
from seapost.cli.output import Output, Table
from seapost.cli.settings import DEFAULT_FILE, load_settings
from seapost.database import installer
from seapost.database.installer import GuardLevel
from seapost.database.pool import SECRET_PARAMETERS, check_dsn

PRIVATE_KEY: Final = ".seapost/workload-private.pem"
PUBLIC_KEY: Final = ".seapost/workload-public.pem"
DATA_FOLDER: Final = ".seapost/postgres"


@dataclass(frozen=True, slots=True)
class Done:
    """What `init` did with one thing."""

    what: str
    result: str


def init(
    dsn: Annotated[
        str | None, typer.Option("--dsn", metavar="DSN", help="Database with the outbox; left out, an embedded server.")
    ] = None,
    consumer_dsn: Annotated[
        str | None,
        typer.Option("--consumer-dsn", metavar="DSN", help="A consumer's own database, to be prepared as well."),
    ] = None,
    embedded: Annotated[
        Path, typer.Option("--embedded", metavar="DIR", help="Data directory of the embedded server, without --dsn.")
    ] = Path(DATA_FOLDER),
    file: Annotated[Path, typer.Option("--config", metavar="FILE", help="Settings file to write.")] = DEFAULT_FILE,
    guards: Annotated[
        GuardLevel | None, typer.Option("--guards", help="Guard level to set: lean (the default) or strict.")
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Prepare a database, a settings file and the key pair that dispatcher and consumers trust each other by.

    Files that exist are kept as they are, and what they say about the databases is followed. Without --dsn, an embedded
    PostgreSQL (extra `embedded`) serves the outbox and the first consumer from one data directory.
    """
    output = Output(as_json=as_json)
    folder = file.absolute().parent
    from seapost.cli import keys  # noqa: PLC0415 - cryptography is slow to load, and other commands need none

    written = keys.ensure_pair(folder / PRIVATE_KEY, folder / PUBLIC_KEY)
    done = [
        *(Done(name, "written" if folder / name in written else "kept") for name in (PRIVATE_KEY, PUBLIC_KEY)),
        _settings_file(file, dsn, consumer_dsn, embedded),
    ]
    settings = load_settings(file=file, flags={("database", "dsn"): dsn, ("consumer", "dsn"): consumer_dsn})
    databases: dict[str, str] = {}
    for section, database in (("database", settings.database), ("consumer", settings.consumer)):
        if section == "consumer" and database.dsn is None and database.embedded is None:
            continue
        with output.progress(f"preparing [{section}]"):
            given = dsn if section == "database" else consumer_dsn
            address = direct_dsn_of(database, section) if given is None else dsn_of(database, section)
            report = installer.migrate(address, guards=guards)
        databases[section] = database_name(address)
        done.append(Done(f"[{section}] {database_name(address)}", "migrated" if report.changed else "current"))
    output.emit(
        {
            "databases": databases,
            "config": file.absolute(),
            "steps": [{"what": d.what, "result": d.result} for d in done],
        },
        Table(("what", "result"), [(one.what, one.result) for one in done]),
    )
    return ExitCode.DONE


def _settings_file(file: Path, dsn: str | None, consumer_dsn: str | None, embedded: Path) -> Done:
    if file.exists():
        return Done(str(file), "kept")
    file.absolute().parent.mkdir(parents=True, exist_ok=True)
    text = starter_file(
        _database_lines(dsn, "SEAPOST_DATABASE_DSN", embedded, "outbox", file.absolute().parent),
        None
        if dsn is not None and consumer_dsn is None
        else _database_lines(consumer_dsn, "SEAPOST_CONSUMER_DSN", embedded, "consumer", file.absolute().parent),
    )
    with file.open("x", encoding="utf-8") as stream:
        _ = stream.write(text)
    return Done(str(file), "written")


def _database_lines(dsn: str | None, variable: str, embedded: Path, name: str, folder: Path) -> str:
    """Where a database is; a password never gets into the file."""
    if dsn is None:
        path = embedded.absolute()
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        return f"embedded = {_quoted(str(shown))}\nname = {_quoted(name)}\n"
    parameters: Mapping[str, object] = conninfo.conninfo_to_dict(check_dsn(dsn))
    public = {key: value for key, value in parameters.items() if key not in SECRET_PARAMETERS}
    lines = f"dsn = {_quoted(conninfo.make_conninfo('', **public))}\n"  # pyright: ignore[reportArgumentType]
    if public != dict(parameters):
        lines = f"# The password is not kept here: give it as PGPASSWORD, or the whole string as {variable}.\n" + lines
    return lines


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = "".join(
        f"\\{character}"
        if character in {'"', "\\"}
        else character
        if character.isprintable()
        else f"\\u{ord(character):04x}"
        for character in text
    )
    return f'"{escaped}"'


def starter_file(database: str, consumer: str | None) -> str:
    """The first settings file: what is needed, and what is looked for first."""
    consumer_section = (
        f"\n# The consumer's own database: its receipts, and the effects beside them.\n[consumer]\n{consumer}"
    )
    return f"""\
# Settings of Seapost. Flags and SEAPOST_… variables win over this file; every setting is in the reference.

# The database with the outbox: the producer's own.
[database]
{database}{consumer_section if consumer is not None else ""}
# Who the dispatcher is to the consumers that it calls.
[workload]
private_key_file = "{PRIVATE_KEY}"

# The endpoint of `seapost serve`.
[receiver]
public_key_files = ["{PUBLIC_KEY}"]
port = 8700

# One section for each destination that `seapost dispatch` serves.
# [destinations.billing]
# url = "http://127.0.0.1:8700"
# allow_networks = ["127.0.0.0/8"]
# timeout_seconds = 30.0
# lease_seconds = 60.0
# batch_size = 500
"""
