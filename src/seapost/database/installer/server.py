"""What the server and the user must be able to do before anything is installed, and the cluster's roles."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import Connection, sql

from seapost.database.installer.state import execute_text
from seapost.database.installer.tree import Roles, SqlTree
from seapost.model.errors import UnsupportedDatabase

SERVER_VERSION_MIN: Final = 150_000
ROLE_TRIES_MAX: Final = 10

_SERVER: Final = """
select current_setting('server_version_num')::int, current_setting('server_version'),
       current_setting('server_encoding'), pg_catalog.pg_is_in_recovery()"""
_USER: Final = """
select current_user::text, r.rolsuper, r.rolsuper or r.rolcreaterole,
       pg_catalog.has_database_privilege(current_database(), 'create'), current_database()::text
from pg_catalog.pg_roles as r where r.rolname = current_user"""


def check_server(connection: Connection) -> None:
    """Raise UnsupportedDatabase unless the server is PostgreSQL 15 or newer, UTF8, and takes writes."""
    row = connection.execute(_SERVER).fetchone()
    if row is None:
        raise UnsupportedDatabase("The server did not answer with its version.")
    number, version, encoding, in_recovery = row
    if number < SERVER_VERSION_MIN:
        raise UnsupportedDatabase(f"Seapost needs PostgreSQL 15 or newer; this server is {version}.")
    if encoding != "UTF8":
        raise UnsupportedDatabase(
            f"Seapost needs a database with encoding UTF8; this one has {encoding}. "
            "Create it with: create database … encoding 'UTF8' template template0"
        )
    if in_recovery:
        raise UnsupportedDatabase("This server is a read-only replica; name the primary in the connection string.")


def ensure_roles(connection: Connection, roles: Roles, missing: frozenset[str]) -> None:
    """Run the roles file where we may; go on without it where we may not but every role exists.

    Roles belong to the whole server while our lock belongs to one database, so two installers can make the
    same role at the same moment; whoever loses that race runs the file again.
    """
    if roles.text and _user(connection).may_create_roles:
        try:
            _run_roles(connection, roles)
        except psycopg.errors.InsufficientPrivilege:
            pass  # a restricted administrator; what exists decides
        else:
            return
    if missing:
        raise UnsupportedDatabase(
            f"The roles {', '.join(sorted(missing))} do not exist and this user may not create them. "
            'Have an administrator run what `seapost migrate --dry-run` prints under "roles", then migrate again.'
        )


def _run_roles(connection: Connection, roles: Roles) -> None:
    for attempt in range(1, ROLE_TRIES_MAX + 1):
        try:
            with connection.transaction():
                execute_text(connection, roles.text, "roles.sql")
        except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.InternalError_):
            if attempt == ROLE_TRIES_MAX:
                raise
        else:
            return


def take_ownership(connection: Connection, tree: SqlTree) -> None:
    """Create the schema for the owner role and become that role for the rest of the transaction.

    Raises:
        UnsupportedDatabase: the user is no member of the owner role, or may not create a schema; the
            message holds the statement that an administrator runs.
    """
    user = _user(connection)
    owner, name = sql.Identifier(tree.owner), sql.Identifier(tree.schema)
    try:
        with connection.transaction():
            _become(connection, tree, user)
            connection.execute("reset role")
    except psycopg.errors.InsufficientPrivilege as error:
        statement = sql.SQL("grant {} to {}").format(owner, sql.Identifier(user.name)).as_string(connection)
        raise UnsupportedDatabase(
            f"The user {user.name} is no member of {tree.owner}, who owns the schema. "
            f"Have an administrator run: {statement};"
        ) from error
    schema_owner = _schema_owner(connection, tree)
    if schema_owner is not None and schema_owner != tree.owner:
        raise UnsupportedDatabase(
            f"The schema {tree.schema} belongs to {schema_owner}. "
            f"Have an administrator run: alter schema {tree.schema} owner to {tree.owner};"
        )
    if schema_owner is None:
        if not user.may_create_schema:
            statement = (
                sql.SQL("grant create on database {} to {}")
                .format(sql.Identifier(user.database), sql.Identifier(user.name))
                .as_string(connection)
            )
            raise UnsupportedDatabase(
                f"The user {user.name} may not create a schema in {user.database}. "
                f"Have an administrator run: {statement};"
            )
        connection.execute(sql.SQL("create schema {} authorization {}").format(name, owner))
    connection.execute(sql.SQL("set local role {}").format(owner))


def _schema_owner(connection: Connection, tree: SqlTree) -> str | None:
    row = connection.execute(
        "select pg_catalog.pg_get_userbyid(n.nspowner)::text from pg_catalog.pg_namespace as n where n.nspname = %s",
        (tree.schema,),
    ).fetchone()
    return None if row is None else str(row[0])


class _User:
    """The installing user and what it may do."""

    def __init__(self, row: tuple[str, bool, bool, bool, str]) -> None:
        self.name, self.is_superuser, self.may_create_roles, self.may_create_schema, self.database = row


def _user(connection: Connection) -> _User:
    row = connection.execute(_USER).fetchone()
    if row is None:
        raise UnsupportedDatabase("The server does not know the current user.")
    return _User(row)


def _become(connection: Connection, tree: SqlTree, user: _User) -> None:
    """Set the owner role; who made that role may first have to make himself a member (PostgreSQL 16)."""
    owner = sql.Identifier(tree.owner)
    try:
        with connection.transaction():
            connection.execute(sql.SQL("set local role {}").format(owner))
    except psycopg.errors.InsufficientPrivilege:
        connection.execute(sql.SQL("grant {} to {}").format(owner, sql.Identifier(user.name)))
        connection.execute(sql.SQL("set local role {}").format(owner))
