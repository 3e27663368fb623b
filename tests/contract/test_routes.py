"""Declared routes become delivery sets: planned, registered, activated, compared."""

from __future__ import annotations

import psycopg
import pytest

from seapost.contracts.events import Event
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import ContractError, DeliverySetConflict, UnknownContract
from seapost.outbox import routes
from seapost.outbox.application import Application, Destination
from tests.kit.database import TestDatabase


class Placed(Event, type="order.placed@1", producer="shop"):
    """An event with one destination."""

    n: int


class Shipped(Event, type="order.shipped@1", producer="shop"):
    """An event with two destinations."""

    n: int


def shop(*, search: bool = False) -> Application:
    """The application, before and after it learns of the search destination."""
    application = Application("shop")
    application.route(Placed, "billing")
    application.route(Shipped, "billing", *(["search"] if search else []))
    return application


async def connect(database: TestDatabase) -> psycopg.AsyncConnection:
    """A connection with an operator's rights."""
    return await database.connect_async("operator", autocommit=True)


@pytest.mark.req("SET-17", "APP-01")
async def test_plan_apply_plan(database: TestDatabase) -> None:
    """The first plan shows every line; after apply the same routes have nothing to change."""
    connection = await connect(database)
    first = await routes.plan(connection, shop())
    assert first.changes
    assert first.active_version is None
    assert [line.key() for line in first.added] == [
        ("order.placed@1", "1", "billing", "billing"),
        ("order.shipped@1", "1", "billing", "billing"),
    ]

    await routes.apply(connection, first.definition, source_release="1.0", actor="operator")
    second = await routes.plan(connection, shop())

    assert not second.changes
    assert second.active_version == "1"
    assert (second.added, second.removed) == ((), ())
    await connection.close()


@pytest.mark.req("SET-17", "SET-40")
async def test_a_new_destination_is_a_new_version(database: TestDatabase) -> None:
    """Only the difference is shown; the old version is retired and cannot come back, its routes can."""
    connection = await connect(database)
    await routes.apply(connection, shop().definition("1"), source_release="1.0", actor="operator")
    grown = await routes.plan(connection, shop(search=True))
    assert grown.definition.delivery_set_version == "2"
    assert [line.destination for line in grown.added] == ["search"]
    assert grown.removed == ()

    await routes.apply(connection, grown.definition, source_release="1.1", actor="operator")
    back = await routes.plan(connection, shop())

    assert back.definition.delivery_set_version == "3"
    assert [line.destination for line in back.removed] == ["search"]
    await connection.close()


@pytest.mark.req("SET-14", "SET-17")
async def test_a_version_never_changes(database: TestDatabase) -> None:
    """Registering other routes under a used version is a conflict, and nothing is stored."""
    connection = await connect(database)
    await routes.register(connection, shop().definition("1"), source_release="1.0", actor="operator")
    with pytest.raises(DeliverySetConflict):
        await routes.register(connection, shop(search=True).definition("1"), source_release="1.0", actor="operator")
    await routes.register(connection, shop().definition("1"), source_release="1.0", actor="operator")

    cursor = await connection.execute("select delivery_set_version, status from seapost.delivery_set_versions")
    assert await cursor.fetchall() == [("1", "registered")]
    await connection.close()


@pytest.mark.req("SET-07")
def test_one_destination_of_an_event_has_one_consumer() -> None:
    """Routing the same destination of an event to a second consumer is refused where it is declared."""
    application = shop()
    application.route(Placed, "billing")  # the same again is harmless
    with pytest.raises(ContractError, match="billing"):
        application.route(Placed, Destination("billing", consumer="other"))


@pytest.mark.req("AMB-38")
def test_receipt_types_and_projections_must_fit() -> None:
    """An unknown receipt type is refused at once, a projection target without its receipt type at the definition."""
    application = Application("shop")
    with pytest.raises(UnknownContract):
        application.route(Placed, Destination("billing", receipt=("Unknown", "1")))
    application.route(
        Placed, Destination("billing", receipt=("ConsumerReceipt", "1"), projection=ProjectionTarget("orders", "1"))
    )
    with pytest.raises(ContractError, match="projection"):
        application.definition("1")


@pytest.mark.req("AMB-38", "SET-11")
def test_the_kernels_own_receipt_follows_from_the_projection() -> None:
    """Who names no receipt type gets the consumer's, or the projection's where one is named."""
    application = Application("shop")
    application.route(Placed, "billing", Destination("views", projection=ProjectionTarget("orders", "1")))
    assert [(one.destination, one.expected_receipt_type) for one in application] == [
        ("billing", "ConsumerReceipt"),
        ("views", "ProjectionAppliedReceipt"),
    ]


@pytest.mark.req("SET-17", "REF-11")
async def test_a_definition_has_one_version_in_every_database(
    database: TestDatabase, strict_database: TestDatabase
) -> None:
    """A database that never saw the earlier versions registers the definition under the version it is told."""
    producer, consumer = await connect(database), await connect(strict_database)
    first = await routes.plan(producer, shop())
    await routes.apply(producer, first.definition, source_release="1.0", actor="operator")
    second = await routes.plan(producer, shop(search=True))
    assert second.definition.delivery_set_version == "2"

    copy = await routes.plan(consumer, shop(search=True), version="2")
    await routes.register(consumer, copy.definition, source_release="1.1", actor="operator")

    assert copy.definition == second.definition
    assert (await routes.plan(consumer, shop(search=True))).definition == second.definition
    await producer.close()
    await consumer.close()


@pytest.mark.req("SET-17")
async def test_a_version_cannot_be_given_twice(database: TestDatabase) -> None:
    """Naming the active version for other routes is a change that the registry refuses."""
    connection = await connect(database)
    first = await routes.plan(connection, shop())
    await routes.apply(connection, first.definition, source_release="1.0", actor="operator")

    other = await routes.plan(connection, shop(search=True), version="1")

    assert other.changes
    with pytest.raises(DeliverySetConflict):
        await routes.apply(connection, other.definition, source_release="1.1", actor="operator")
    await connection.close()


def loud(lanes: int | None) -> Application:
    """An application that spreads the tenants of billing over so many lanes."""
    application = Application("shop")
    application.route(Placed, Destination("billing", fair_lanes=lanes))
    application.route(Shipped, "billing")
    return application


@pytest.mark.req("F23")
async def test_fair_lanes_are_applied_beside_the_definition(database: TestDatabase) -> None:
    """Declared lanes are planned, applied and compared; they change no digest, and who says nothing changes nothing."""
    connection = await connect(database)
    first = await routes.plan(connection, loud(64))
    assert first.fair_lanes == {"billing": (1, 64)}
    await routes.apply(
        connection, first.definition, source_release="1.0", actor="operator", fair_lanes=loud(64).fair_lanes
    )
    assert not (await routes.plan(connection, loud(64))).changes
    assert not (await routes.plan(connection, loud(None))).changes
    fewer = await routes.plan(connection, loud(1))
    assert (fewer.changes, fewer.fair_lanes, fewer.definition) == (True, {"billing": (64, 1)}, first.definition)
    await routes.apply(
        connection, fewer.definition, source_release="1.0", actor="operator", fair_lanes=loud(1).fair_lanes
    )
    assert not (await routes.plan(connection, loud(1))).changes
    await connection.close()


@pytest.mark.req("F23")
@pytest.mark.parametrize("lanes", [0, 257, True, 2.0])
def test_fair_lanes_have_limits(lanes: int) -> None:
    """1 to 256, a whole number."""
    with pytest.raises(ContractError, match="fair_lanes"):
        Destination("billing", fair_lanes=lanes)


@pytest.mark.req("F23")
def test_a_destination_has_one_number_of_fair_lanes() -> None:
    """Two routes of one destination may not disagree."""
    application = loud(64)
    with pytest.raises(ContractError, match="fair_lanes"):
        application.route(Shipped, Destination("billing", fair_lanes=8))
