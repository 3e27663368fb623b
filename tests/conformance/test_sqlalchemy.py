"""What only SQLAlchemy has: flushes, its own ways to begin, and errors that quote their parameters."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any, cast

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

import seapost
from seapost.adapters.sqlalchemy import append, append_async, append_many
from seapost.contracts.events import Event
from seapost.model.errors import AppendOutsideTransaction, EventConflict, InvalidSetting
from seapost.outbox.append import prepare
from tests.conformance.conftest import Shop
from tests.kit.drivers.sqlalchemy_drivers import async_engine_of, engine_of

TRANSACTION = text("select pg_current_xact_id()::text")


class Counted(Event, type="test.counted@1", producer="tests", aggregate="counter"):
    """An event that is routed."""

    n: int
    note: str = ""


class Base(DeclarativeBase):
    """The mapped classes of this module."""


class Business(Base):
    """The table of the shop."""

    __tablename__ = "business"
    n: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture
def engine(shop: Shop) -> Iterator[Engine]:
    """An engine over psycopg."""
    made = engine_of(shop.database.dsn, prepared=True)
    yield made
    made.dispose()


def test_pending_objects_are_flushed_first(engine: Engine, shop: Shop) -> None:
    """What the Session holds back is written before the append, in the same transaction."""
    with Session(engine) as session, session.begin():
        before = session.execute(TRANSACTION).scalar_one()
        session.add(Business(n=1))
        append(session, Counted(n=1), key="c-1", revision=1)
        assert not session.new
        assert session.execute(TRANSACTION).scalar_one() == before
        assert (shop.numbers(), shop.business()) == ([], [])

    assert (shop.numbers(), shop.business()) == ([1], [1])


def test_a_flush_that_fails_appends_nothing(engine: Engine, shop: Shop) -> None:
    """The caller gets the error of the flush; the transaction is SQLAlchemy's to roll back."""
    shop.kernel.run("insert into public.business values (1)")
    with Session(engine) as session:
        session.add(Business(n=1))
        with pytest.raises(IntegrityError):
            append(session, Counted(n=1), key="c-1", revision=1)
        session.rollback()
        append(session, Counted(n=2), key="c-2", revision=1)
        session.commit()

    assert shop.numbers() == [2]


def test_without_autoflush_the_session_is_left_alone(engine: Engine, shop: Shop) -> None:
    """`no_autoflush` holds for the append too; the commit flushes."""
    with Session(engine) as session, session.begin(), session.no_autoflush:
        session.add(Business(n=1))
        append(session, Counted(n=1), key="c-1", revision=1)
        assert session.new

    assert (shop.numbers(), shop.business()) == ([1], [1])


def test_a_session_that_does_not_begin_by_itself(engine: Engine, shop: Shop) -> None:
    """Without `begin` there is no transaction, and the refusal says what to do."""
    with Session(engine, autobegin=False) as session:
        with pytest.raises(AppendOutsideTransaction, match=r"session\.begin"):
            append(session, Counted(n=1), key="c-1", revision=1)
        with session.begin():
            append(session, Counted(n=2), key="c-2", revision=1)

    assert shop.numbers() == [2]


def test_two_phase_transactions_are_refused(engine: Engine, shop: Shop) -> None:
    """PostgreSQL does not prepare what sends a notification, so an append there would fail now and then."""
    with (
        engine.connect() as connection,
        connection.begin_twophase(),
        pytest.raises(AppendOutsideTransaction, match="two-phase"),
    ):
        append(connection, Counted(n=1), key="c-1", revision=1)

    assert shop.numbers() == []


def test_a_scoped_session_is_its_session(engine: Engine, shop: Shop) -> None:
    """The registry stands for the Session of its thread."""
    session = scoped_session(sessionmaker(engine))
    append(session, Counted(n=1), key="c-1", revision=1)
    session.commit()
    session.remove()

    assert shop.numbers() == [1]


async def test_an_async_scoped_session_is_its_session(shop: Shop) -> None:
    """The registry stands for the AsyncSession of its scope."""
    engine = async_engine_of(shop.database.dsn, "asyncpg", prepared=True)
    session: async_scoped_session[AsyncSession] = async_scoped_session(async_sessionmaker(engine), lambda: "one")
    await append_async(session, Counted(n=1), key="c-1", revision=1)
    await session.commit()
    await session.remove()
    await engine.dispose()

    assert shop.numbers() == [1]


def test_the_call_of_psycopg_names_the_adapters(engine: Engine, shop: Shop) -> None:
    """A Session handed to `seapost.append` is refused with the place where its own call is."""
    with Session(engine) as session, pytest.raises(InvalidSetting, match=r"not Session.*seapost\.adapters"):
        seapost.append(cast("Any", session), Counted(n=1), key="c-1", revision=1)

    assert shop.numbers() == []


def test_another_database_is_refused() -> None:
    """The message names what it was given."""
    engine = create_engine("sqlite://")
    with Session(engine) as session, pytest.raises(InvalidSetting, match="sqlite"):
        append(session, Counted(n=1), key="c-1", revision=1)
    engine.dispose()


def test_an_error_does_not_quote_the_event(engine: Engine, shop: Shop) -> None:
    """SQLAlchemy's errors hold the parameters, which are whole events; ours are raised from the driver's error."""
    first = prepare(Counted(n=1, note="first"), key="c-1", revision=1)
    other = prepare(Counted(n=1, note="Ada Lovelace"), key="c-1", revision=1, event_id=first.event_id)
    with Session(engine) as session:
        append_many(session, [first])
        with pytest.raises(EventConflict) as conflict:
            append_many(session, [other])

    assert "Ada" not in "".join(traceback.format_exception(conflict.value))
    assert str(first.event_id) in str(conflict.value)
    assert shop.numbers() == []
