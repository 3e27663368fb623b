"""Versions of a projection: each has its own target, receipts, revisions and summary, and must be registered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seapost.database.installer import GuardLevel
from seapost.model.outcome import Acknowledged
from tests.kit import builders
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.deciding import VIEWS, ViewReceipt, claim, prepare_database, running
from tests.kit.kernel import Kernel, refused
from tests.kit.parcels import applied_count, codes, event, parcels, revision


@pytest.fixture(scope="module")
def shared(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give one database to all tests here; every test has its own parcels."""
    database = database_server.create(GuardLevel.STRICT)
    prepare_database(database)
    with database.connect(autocommit=True) as connection:
        assert parcels("1").register(connection, actor="tester") == "active"
        assert parcels("2").register(connection, actor="tester") == "building"
    yield database
    database_server.drop(database)


@pytest.fixture
def kernel(shared: TestDatabase) -> Iterator[Kernel]:
    """Give an onlooker."""
    with shared.connect(autocommit=True) as connection:
        yield Kernel(connection)


@pytest.fixture
def parcel() -> str:
    """Give the name of a parcel of this test."""
    return f"parcel-{builders.new_event_id()}"


@pytest.mark.req("SET-11", "SET-32", "OPS-01")
async def test_a_delivery_for_another_version_is_not_applied(shared: TestDatabase, kernel: Kernel, parcel: str) -> None:
    """The frozen target decides: neither version applies or acknowledges what was frozen for the other."""
    ours, theirs = event(parcel, 1), event(parcel, 1, version="2")
    for version, wrong in (("1", theirs), ("2", ours)):
        async with running(shared, parcels(version).inbox) as behind:
            assert codes(await behind.receive(wrong)) == ["dependency_unavailable"]
            assert behind.effects(wrong) == []
    assert (revision(kernel, parcel), revision(kernel, parcel, "2")) == (0, 0)


@pytest.mark.req("OPS-01", "RCP-03", "SET-32")
async def test_each_version_has_its_own_receipt_revision_and_summary(
    shared: TestDatabase, kernel: Kernel, parcel: str
) -> None:
    """One event applied by two versions: two receipts that differ in version and reference."""
    text = event(parcel, 1).envelope
    receipts: list[ViewReceipt] = []
    for version in ("1", "2"):
        count = applied_count(kernel, version)
        async with running(shared, parcels(version).inbox) as behind:
            (answer,) = await behind.receive(claim(destination=VIEWS, version=version, envelope=text))
        assert isinstance(answer, Acknowledged)
        receipts.append(ViewReceipt.decode(answer.receipt))
        assert (revision(kernel, parcel, version), applied_count(kernel, version)) == (1, count + 1)
    assert [receipt.projection_version for receipt in receipts] == ["1", "2"]
    assert receipts[0].view_receipt_ref != receipts[1].view_receipt_ref
    stored = kernel.rows(
        "select consumer from seapost.inbox_receipts where event_id = %s order by consumer",
        builders.event_id_of(text),
    )
    assert stored == [("viewer@parcels@1",), ("viewer@parcels@2",)]


def test_registering_a_version_twice_changes_nothing(kernel: Kernel) -> None:
    """It is audited once, the first version is active and later ones are built; a name that is none is refused."""
    assert parcels("1").register(kernel.connection, actor="somebody else") == "active"
    audited = kernel.value("select count(*) from seapost.audit_records where subject_ref = 'parcels@1'")
    assert audited == 1
    assert kernel.rows("select projection_version, state from seapost.projection_versions order by 1") == [
        ("1", "active"),
        ("2", "building"),
    ]
    for name, version in (("Parcels", "1"), ("parcels", "1x"), (None, "1"), ("parcels", None)):
        with refused("SP013"):
            kernel.run("select seapost.projection_register_v1(%s, %s, 'tester')", name, version)


@pytest.mark.parametrize("make", ["retire", "forget"])
async def test_a_version_that_may_not_apply_answers_retryable(database: TestDatabase, make: str, parcel: str) -> None:
    """Retired or never registered: no effect, no receipt, no revision."""
    prepare_database(database)
    with database.connect(autocommit=True) as connection:
        if make == "retire":
            parcels().register(connection, actor="tester")
            connection.execute("update seapost.projection_version set state = 'retired'")
        held = event(parcel, 1)
        async with running(database, parcels().inbox) as behind:
            assert codes(await behind.receive(held)) == ["dependency_unavailable"]
            assert (behind.effects(held), behind.receipts(held)) == ([], set())
        assert revision(Kernel(connection), parcel) == 0
