"""A small SQL tree that installer tests grow file by file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from seapost.database.installer import SqlTree

VERSIONS_VIEW: Final = """
create view fake.schema_versions as
select m.number, m.phase, m.name, m.checksum, m.release, m.finished_at from fake.schema_migration as m;
"""
ROLES: Final = """
do $$
begin
    if not exists (select from pg_catalog.pg_roles as r where r.rolname = 'fake_owner') then
        begin
            create role fake_owner nologin;
        exception when duplicate_object or unique_violation then
            null;
        end;
    end if;
end $$;
"""


class SqlFiles:
    """Writes the files of one tree; the schema is `fake`, the owner `fake_owner`."""

    def __init__(self, root: Path, *, owner: str = "fake_owner") -> None:
        self.root = root
        self.tree = SqlTree(root, schema="fake", owner=owner)

    def write(self, name: str, text: str) -> None:
        """Write one file, named from the root of the tree."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def remove(self, name: str) -> None:
        """Remove one file."""
        (self.root / name).unlink()


@pytest.fixture
def sql_files(tmp_path: Path) -> SqlFiles:
    """Give a tree with roles, one migration, one function and the view of versions."""
    files = SqlFiles(tmp_path)
    files.write("roles/roles.sql", ROLES)
    files.write("migrations/0001_first.pre.sql", "create table fake.thing (id int primary key, note text);\n")
    files.write(
        "functions/thing/count_v1.sql",
        "create or replace function fake.thing_count_v1() returns bigint language sql\n"
        "as $$ select count(*) from fake.thing $$;\n",
    )
    files.write("views/schema_versions.sql", VERSIONS_VIEW)
    return files
