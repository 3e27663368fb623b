"""Who may install: a superuser, or any user for whom an administrator has prepared roles and rights."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import conninfo, sql

from seapost.database.installer import migrate
from seapost.model.errors import UnsupportedDatabase
from tests.kit.database import TestDatabase
from tests.kit.sql_files import SqlFiles


@dataclass(frozen=True)
class Installer:
    """A login role without special rights, and the database it wants to install into."""

    user: str
    dsn: str
    admin: psycopg.Connection

    def grant(self, statement: str) -> None:
        """Run an administrator's statement about the user."""
        self.admin.execute(sql.SQL(statement).format(sql.Identifier(self.user)))  # pyright: ignore[reportArgumentType]


@pytest.fixture
def installer(empty_database: TestDatabase) -> Iterator[Installer]:
    """Make a user who may log in and nothing else."""
    user = f"seapost_test_user_{uuid.uuid4().hex[:8]}"
    password = uuid.uuid4().hex
    admin = empty_database.connect(autocommit=True)
    admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(user), sql.Literal(password)))
    parameters = conninfo.conninfo_to_dict(empty_database.dsn)
    parameters.update(user=user, password=password)
    yield Installer(user, conninfo.make_conninfo("", **parameters), admin)
    admin.execute(sql.SQL("drop owned by {0} cascade").format(sql.Identifier(user)))
    admin.execute(sql.SQL("drop role {0}").format(sql.Identifier(user)))


def _fake_roles(files: SqlFiles, installer: Installer) -> SqlFiles:
    """Give the tree an owner role that no other test makes."""
    owner = f"{installer.user}_owner"
    files.write("roles/roles.sql", f"create role {owner} nologin;\n")
    return SqlFiles(files.root, owner=owner)


def test_a_user_without_rights_learns_what_an_administrator_must_run(installer: Installer, sql_files: SqlFiles) -> None:
    """Step by step the refusals name what is missing; when all is granted, the same command installs."""
    files = _fake_roles(sql_files, installer)
    owner = files.tree.owner
    with pytest.raises(UnsupportedDatabase, match=f"{owner} do not exist"):
        migrate(installer.dsn, tree=files.tree)
    roles = migrate(installer.dsn, tree=files.tree, dry_run=True).to_text()
    assert f"create role {owner} nologin;" in roles

    installer.admin.execute(sql.SQL("create role {} nologin").format(sql.Identifier(owner)))
    try:
        with pytest.raises(UnsupportedDatabase, match=f'grant "{owner}" to "{installer.user}";'):
            migrate(installer.dsn, tree=files.tree)
        installer.grant(f"grant {owner} to {{}}")
        with pytest.raises(UnsupportedDatabase, match="grant create on database"):
            migrate(installer.dsn, tree=files.tree)
        database = installer.admin.info.dbname
        installer.grant(f"grant create on database {database} to {{}}")
        assert migrate(installer.dsn, tree=files.tree).changed
        assert migrate(installer.dsn, tree=files.tree).plan.is_empty
    finally:
        installer.admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(owner)))
        installer.admin.execute(sql.SQL("drop role {}").format(sql.Identifier(owner)))


def test_a_user_who_may_create_roles_makes_them(installer: Installer, sql_files: SqlFiles) -> None:
    """CREATEROLE and CREATE on the database are enough: the user makes the owner role and joins it."""
    files = _fake_roles(sql_files, installer)
    installer.grant("alter role {} createrole")
    installer.grant(f"grant create on database {installer.admin.info.dbname} to {{}}")
    try:
        assert migrate(installer.dsn, tree=files.tree).changed
    finally:
        owner = sql.Identifier(files.tree.owner)
        installer.admin.execute(sql.SQL("drop owned by {} cascade").format(owner))
        installer.admin.execute(sql.SQL("drop role {}").format(owner))


def test_a_foreign_schema_of_our_name_is_refused(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A schema that belongs to somebody else is not taken over."""
    connection = empty_database.connect(autocommit=True)
    connection.execute("create schema fake")
    with pytest.raises(UnsupportedDatabase, match="alter schema fake owner to"):
        migrate(empty_database.dsn, tree=sql_files.tree)


def test_another_encoding_is_refused(empty_database: TestDatabase, sql_files: SqlFiles) -> None:
    """A database that is not UTF8 cannot hold every event; the refusal says how to make one that can."""
    connection = empty_database.connect(autocommit=True)
    name = f"{empty_database.name}_latin"
    create = sql.SQL("create database {} encoding 'LATIN1' locale 'C' template template0")
    connection.execute(create.format(sql.Identifier(name)))
    try:
        dsn = conninfo.make_conninfo(empty_database.dsn, dbname=name)
        with pytest.raises(UnsupportedDatabase, match="encoding UTF8"):
            migrate(dsn, tree=sql_files.tree)
    finally:
        connection.execute(sql.SQL("drop database {}").format(sql.Identifier(name)))
