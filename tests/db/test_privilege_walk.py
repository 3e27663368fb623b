"""Every role, every object, every privilege: what the server says and what it lets happen equal the manifest (R7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from psycopg import sql

from seapost.database.doctor.manifest import packaged_manifest
from seapost.database.doctor.snapshot import Snapshot
from seapost.database.installer import GuardLevel
from seapost.database.installer.tree import packaged_tree, read_tree
from tests.kit import rights
from tests.kit.kernel import Kernel
from tests.kit.manifest import snapshot_of

ROLES = sorted(read_tree(packaged_tree()).roles.names - {"seapost_owner"})
STRANGER = "seapost_test_stranger"


@pytest.fixture(scope="module")
def snapshots() -> dict[str, Snapshot]:
    """Keep what the databases of the module hold; each is read once."""
    return {}


@pytest.fixture
def walked(shared_kernel: Kernel, snapshots: dict[str, Snapshot]) -> Iterator[tuple[Kernel, Snapshot]]:
    """Give a kernel in a transaction in which a role exists that nothing was granted to."""
    connection = shared_kernel.connection
    name = connection.info.dbname
    if name not in snapshots:
        snapshots[name] = asyncio.run(snapshot_of(connection.info.dsn))
    with connection.transaction(force_rollback=True):
        connection.execute(sql.SQL("create role {}").format(sql.Identifier(STRANGER)))
        yield shared_kernel, snapshots[name]


def _level(kernel: Kernel) -> GuardLevel:
    return GuardLevel(kernel.value("select level from seapost.guard_levels"))


@pytest.mark.req("SEC-01", "SEC-02", "SEC-03", "SEC-04", "SEC-06", "NEG-48")
@pytest.mark.parametrize("role", [*ROLES, STRANGER])
def test_the_server_says_what_the_manifest_declares(walked: tuple[Kernel, Snapshot], role: str) -> None:
    """For each object, column and privilege, the role holds it exactly when the manifest gives it."""
    kernel, snapshot = walked
    declared = rights.declared(packaged_manifest(), _level(kernel), snapshot, role)
    assert rights.asked(kernel.connection, role) == declared
    assert (role == STRANGER) == (declared == set())


@pytest.mark.req("SEC-01", "SEC-02", "SEC-03", "SEC-04", "SEC-06", "SEC-18", "NEG-48")
@pytest.mark.parametrize("role", [*ROLES, STRANGER])
def test_the_server_lets_happen_what_the_manifest_declares(walked: tuple[Kernel, Snapshot], role: str) -> None:
    """A statement of each kind on each object, tried as the role, gets through exactly when it was granted."""
    kernel, snapshot = walked
    declared = rights.declared(packaged_manifest(), _level(kernel), snapshot, role) - {("schema seapost", "usage")}
    with rights.trying_as(kernel.connection, role):
        assert rights.tried(kernel.connection) == declared


def test_no_role_may_change_a_table(walked: tuple[Kernel, Snapshot]) -> None:
    """Whatever the manifest declares, it gives a runtime role nothing but reading views and running functions."""
    kernel, snapshot = walked
    for role in ROLES:
        for label, kind in rights.declared(packaged_manifest(), _level(kernel), snapshot, role):
            assert (label.partition(" ")[0], kind) in {
                ("view", "select"),
                ("function", "execute"),
                ("schema", "usage"),
            }, (role, label, kind)


@pytest.mark.parametrize(
    ("grant", "right"),
    [
        ("grant truncate on seapost.publication to {}", ("table publication", "truncate")),
        ("grant trigger on seapost.event_0001 to {}", ("partition event_0001", "trigger")),
        ("grant references on seapost.delivery_lease to public", ("table delivery_lease", "references")),
        ("grant update on sequence seapost.attempt_id to {}", ("sequence attempt_id", "update")),
        ("grant create on schema seapost to {}", ("schema seapost", "create")),
        ("grant execute on function seapost.guards_set_v1 to {}", ("function guards_set_v1(text)", "execute")),
    ],
)
def test_the_walk_notices_a_grant(walked: tuple[Kernel, Snapshot], grant: str, right: rights.Right) -> None:
    """A right too many shows in both walks, so that they cannot pass for want of looking."""
    connection = walked[0].connection
    role = "seapost_auditor"
    before = rights.asked(connection, role)
    connection.execute(grant.format(role).encode())
    assert rights.asked(connection, role) - before == {right}
    with rights.trying_as(connection, role):
        assert right in rights.tried(connection)
