"""The release in a database: installed twice it changes nothing, and a producer refuses to start without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oceanway.installation.databases import ensure_database, install, named_dsn
from oceanway.installation.errors import ReleaseIncomplete
from oceanway.installation.release import activate_release, check_release
from seapost import Application, Event
from seapost.database.installer import SqlTree
from seapost.model.errors import DeliverySetConflict
from seapost.testing.databases import DatabaseServer, TestDatabase

MIGRATION = "create table harbour.berth (berth text primary key);\n"


class ShipMoored(Event, type="ship.moored@1", producer="harbour", aggregate="ship"):
    """A ship lies at a berth."""

    ship: str


class ShipLeft(Event, type="ship.left@1", producer="harbour", aggregate="ship"):
    """It has left."""

    ship: str


def routes(*, both: bool = True, elsewhere: bool = False) -> Application:
    """The harbour's routes."""
    application = Application("harbour")
    application.route(ShipMoored, "pilots")
    if elsewhere:
        application.route(ShipMoored, "tugs")
    if both:
        application.route(ShipLeft, "pilots")
    return application


@pytest.fixture
def tree(tmp_path: Path) -> SqlTree:
    """Write the smallest schema of an owner."""
    for folder, name, text in (
        ("migrations", "0001_berth.pre.sql", MIGRATION),
        ("roles", "roles.sql", ROLES),
    ):
        (tmp_path / folder).mkdir()
        _ = (tmp_path / folder / name).write_text(text)
    return SqlTree(tmp_path, "harbour", "harbour_owner", stepwise=True)


ROLES = """-- Purpose: the role of the harbour.
do $$
declare
    v_role text;
begin
    foreach v_role in array array['harbour_owner'] loop
        if not exists (select from pg_catalog.pg_roles as r where r.rolname = v_role) then
            begin
                execute format('create role %I nologin', v_role);
            exception when duplicate_object or unique_violation then
                null;
            end;
        end if;
    end loop;
end $$;
"""


@pytest.fixture
def prepared(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database with the kernel's schema and no active definition."""
    database = database_server.clone("oceanway_release", lambda dsn: install(dsn, [], None))
    yield database
    database_server.drop(database)


@pytest.mark.req("GEN-07")
def test_installing_twice_changes_nothing(empty_database: TestDatabase, tree: SqlTree) -> None:
    """The kernel with strict guards, an owner's schema and the active release; then the same again."""
    first = install(empty_database.dsn, [tree], routes())
    assert (first.schemas, first.migrated, first.activated) == (("seapost", "harbour"), True, True)
    second = install(empty_database.dsn, [tree], routes())
    assert not second.changed
    level = empty_database.connect().execute("select distinct level from seapost.guard_levels").fetchall()
    assert level == [("strict",)]


@pytest.mark.req("AMB-03")
def test_a_version_of_the_release_has_one_content_everywhere(prepared: TestDatabase) -> None:
    """Other routes under the same version are refused, and what is active stays."""
    assert activate_release(prepared.dsn, routes())
    assert not activate_release(prepared.dsn, routes())
    with pytest.raises(DeliverySetConflict):
        _ = activate_release(prepared.dsn, routes(elsewhere=True))
    check_release(prepared.connect(), routes(), [ShipMoored, ShipLeft])


@pytest.mark.req("SET-37")
def test_a_producer_does_not_start_without_an_active_definition(prepared: TestDatabase) -> None:
    """Nothing was ever activated."""
    with pytest.raises(ReleaseIncomplete, match="no active definition"):
        check_release(prepared.connect(), routes(), [ShipMoored])


@pytest.mark.req("SET-37")
def test_a_producer_does_not_start_when_the_active_definition_lacks_its_pair(prepared: TestDatabase) -> None:
    """The definition of an older release is active: it knows one of the two events."""
    _ = activate_release(prepared.dsn, routes(both=False))
    check_release(prepared.connect(), routes(), [ShipMoored])
    with pytest.raises(ReleaseIncomplete, match=r"lacks ship\.left@1 1"):
        check_release(prepared.connect(), routes(), [ShipMoored, ShipLeft])


@pytest.mark.req("SET-37")
def test_a_producer_does_not_start_when_a_mandatory_member_is_missing(prepared: TestDatabase) -> None:
    """The pair is there, one of its destinations is not; and the other way round."""
    _ = activate_release(prepared.dsn, routes())
    with pytest.raises(ReleaseIncomplete, match="elsewhere"):
        check_release(prepared.connect(), routes(elsewhere=True), [ShipMoored])
    _ = activate_release(prepared.dsn, routes(elsewhere=True), version="2")
    with pytest.raises(ReleaseIncomplete, match="elsewhere"):
        check_release(prepared.connect(), routes(), [ShipMoored])


@pytest.mark.req("SET-37")
@pytest.mark.parametrize("role", ["seapost_consumer", "seapost_dispatcher", "seapost_producer"])
def test_the_proof_needs_no_more_than_a_runtime_role(prepared: TestDatabase, role: str) -> None:
    """Every process can prove its release with the rights it has."""
    _ = activate_release(prepared.dsn, routes())
    check_release(prepared.connect(role), routes(), [ShipMoored, ShipLeft])


def test_a_database_is_made_once(database_server: DatabaseServer) -> None:
    """The second call finds it."""
    name = f"seapost_test_ocean_{id(database_server)}"
    for _ in range(2):
        assert ensure_database(database_server.dsn(), name) == named_dsn(database_server.dsn(), name)
    database_server.drop(TestDatabase(name, database_server.dsn(name)))
