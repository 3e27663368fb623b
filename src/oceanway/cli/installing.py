"""What `oceanway init` does, for the program, the demo and the tests alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import conninfo

from oceanway.cli.composition import projections_of, release, trees_of
from oceanway.contracts.release import check_definition
from oceanway.installation.databases import ensure_database, install
from oceanway.installation.keys import ensure_keys
from oceanway.installation.layout import OWNERS, Database
from oceanway.installation.logins import ensure_logins
from oceanway.installation.release import VERSION
from oceanway.installation.settings import load_settings
from seapost.database.pool import SECRET_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path


def prepare(file: Path, *, server: str | None, prefix: str) -> Generator[tuple[str, str]]:
    """Make what is missing of an installation; what each step came to.

    Args:
        file: the settings file; written when it is missing and a server is given.
        server: where databases are made, as a superuser; absent, the settings name databases that are there.
        prefix: begins the names of databases made here.

    Raises:
        ContractError: the release sends an event otherwise than to the four consumers (SET-09, SET-10).
    """
    made: dict[Database, str] = {}
    if server is not None:
        made = {one: ensure_database(server, f"{prefix}_{one}") for one in Database}
        yield str(file), _write_settings(file, made)
    settings = load_settings(file if file.exists() else None)
    application = release()
    check_definition(application.definition(VERSION))
    for database in Database:
        dsn = made.get(database) or settings.dsn(database)
        projections = projections_of(OWNERS[database], application)
        installed = install(dsn, trees_of(database), application, projections=projections)
        yield f"database {installed.database}", "installed" if installed.changed else "current"
        if settings.trust.own_logins:
            logins = ensure_logins(dsn, database, settings.trust.folder)
            yield f"logins of {installed.database}", f"{len(logins)} made" if logins else "kept"
    keys = ensure_keys(settings.trust.folder)
    yield "keys", f"{len(keys)} made" if keys else "kept"


def _write_settings(file: Path, databases: Mapping[Database, str]) -> str:
    """Write a first settings file; a password never gets into it."""
    if file.exists():
        return "kept"
    lines = [
        "# Connection strings of the five databases. Each process puts its own login role into the one it needs.",
        "[databases]",
        *(f"{database} = {_quoted(_public(dsn))}" for database, dsn in databases.items()),
        "",
        "# [addresses], [trust], [dispatch], [serve] and [work] keep their defaults; see the reference.",
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as stream:
        _ = stream.write("\n".join(lines) + "\n")
    return "written"


def _public(dsn: str) -> str:
    parameters: dict[str, Any] = {
        key: value for key, value in conninfo.conninfo_to_dict(dsn).items() if key not in SECRET_PARAMETERS
    }
    return conninfo.make_conninfo("", **parameters)


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = "".join(
        f"\\{one}" if one in '"\\' else one if one.isprintable() else f"\\u{ord(one):04x}" for one in text
    )
    return f'"{escaped}"'
