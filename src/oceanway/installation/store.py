"""What the installation asks of a database and changes in it; the statements of roles name identifiers safely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import sql

if TYPE_CHECKING:
    from psycopg import Connection


def active_candidate(connection: Connection[Any]) -> bytes | None:
    """The canonical bytes of the active definition; None when there is none."""
    row = connection.execute("select candidate from seapost.delivery_set_versions where status = 'active'").fetchone()
    return None if row is None else bytes(row[0])


def database_exists(connection: Connection[Any], name: str) -> bool:
    """Whether the server has a database of this name."""
    found = connection.execute("select 1 from pg_catalog.pg_database where datname = %s", (name,)).fetchone()
    return found is not None


def create_database(connection: Connection[Any], name: str) -> None:
    """Make an empty database; the connection is in autocommit mode."""
    statement = sql.SQL("create database {} template template0 encoding 'UTF8'")
    _ = connection.execute(statement.format(sql.Identifier(name)))


def login_role_exists(connection: Connection[Any], role: str) -> bool:
    """Whether the server knows a role of this name."""
    return connection.execute("select 1 from pg_catalog.pg_roles where rolname = %s", (role,)).fetchone() is not None


def create_login_role(connection: Connection[Any], role: str, verifier: str) -> None:
    """Make a role that may log in and nothing else; `verifier` is the SCRAM verifier, never the password."""
    statement = sql.SQL("create role {} login nosuperuser nocreatedb nocreaterole password {}")
    _ = connection.execute(statement.format(sql.Identifier(role), sql.Literal(verifier)))


def set_password(connection: Connection[Any], role: str, verifier: str) -> None:
    """Give a login role another password, as its SCRAM verifier."""
    statement = sql.SQL("alter role {} password {}")
    _ = connection.execute(statement.format(sql.Identifier(role), sql.Literal(verifier)))


def grant_role(connection: Connection[Any], role: str, member: str) -> None:
    """Make `member` a member of `role`; again changes nothing."""
    _ = connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), sql.Identifier(member)))


def grant_registry(connection: Connection[Any], member: str) -> None:
    """Let a login role read which definition is active, which a producer proves at its start (SET-37)."""
    name = sql.Identifier(member)
    _ = connection.execute(sql.SQL("grant usage on schema seapost to {}").format(name))
    _ = connection.execute(sql.SQL("grant select on seapost.delivery_set_versions to {}").format(name))


def confine(connection: Connection[Any], database: str, members: list[str]) -> None:
    """Let only these login roles, and the database's owner, connect to the database."""
    name = sql.Identifier(database)
    _ = connection.execute(sql.SQL("revoke all on database {} from public").format(name))
    for member in members:
        _ = connection.execute(sql.SQL("grant connect on database {} to {}").format(name, sql.Identifier(member)))
