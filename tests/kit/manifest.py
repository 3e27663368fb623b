"""Writes `src/seapost/sql/manifest.json`: what a scratch database holds after the release was installed into it.

    python -m tests.kit.manifest

The server is a throw-away one out of the wheel; another version writes the same file, which a test proves.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, LiteralString

from psycopg import AsyncConnection

from seapost.database.doctor.manifest import FILE, write_manifest
from seapost.database.doctor.snapshot import Snapshot, read_snapshot, write_plainly
from seapost.database.installer import GuardLevel
from seapost.database.installer.tree import packaged_tree, read_tree
from seapost.testing.databases import serve_databases
from tests.kit.builders import BILLING, ROUTES, definition
from tests.kit.database import DatabaseServer
from tests.kit.tree import ROOT

PATH: Final[Path] = ROOT / "src" / "seapost" / "sql" / FILE
COMMAND: Final = "make manifest"


_EXAMPLES: Final[tuple[tuple[LiteralString, tuple[object, ...]], ...]] = (
    ("select seapost.delivery_set_register_v1(%s, 'example', 'example')", (definition("1", ROUTES),)),
    ("select seapost.backpressure_set_v1(%s, 1, 'refuse', 0, 'example')", (BILLING,)),
)
"""Calls that make one example of everything that functions make at run time."""


async def snapshot_of(dsn: str) -> Snapshot:
    """The catalogs of one database with an example of what comes later; nothing is kept."""
    async with await AsyncConnection.connect(dsn) as connection:
        for statement, arguments in _EXAMPLES:
            await connection.execute(statement, arguments)
        await write_plainly(connection)
        snapshot = await read_snapshot(connection, read_tree(packaged_tree()))
        await connection.rollback()
        return snapshot


def manifest_text(server: DatabaseServer) -> str:
    """The manifest as `server` sees what this checkout installs."""
    snapshots: Mapping[GuardLevel, Snapshot] = {level: _installed(server, level) for level in GuardLevel}
    return write_manifest(read_tree(packaged_tree()).number, snapshots)


def _installed(server: DatabaseServer, level: GuardLevel) -> Snapshot:
    database = server.create(level)
    try:
        return asyncio.run(snapshot_of(database.dsn))
    finally:
        server.drop(database)


def main() -> None:
    """Write the file."""
    with serve_databases(None) as server:
        text = manifest_text(server)
    PATH.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {PATH.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
