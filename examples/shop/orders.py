"""The service that takes orders. Each change of an order and its event commit together."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import FastAPI, HTTPException
from psycopg.conninfo import conninfo_to_dict
from pydantic import BaseModel, Field
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.shop.contracts import OrderCancelled, OrderPlaced
from seapost.adapters.sqlalchemy import append_async

DSN_VARIABLE: Final = "ORDERS_DSN"


class Base(DeclarativeBase):
    """Tables of this service."""


class Order(Base):
    """One order; `revision` counts its changes, and each event says which of them it is."""

    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(primary_key=True)
    customer: Mapped[str]
    cents: Mapped[int]
    is_cancelled: Mapped[bool] = mapped_column(default=False)
    revision: Mapped[int] = mapped_column(default=1)


class NewOrder(BaseModel):
    """Body of `POST /orders`."""

    id: Annotated[str, Field(min_length=1, max_length=100)]
    customer: Annotated[str, Field(min_length=1, max_length=100)]
    cents: Annotated[int, Field(gt=0, le=100_000_000)]


def create_app(dsn: str) -> FastAPI:
    """The service on one database."""
    engine = create_async_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(dsn))
    sessions = async_sessionmaker(engine)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        yield
        await engine.dispose()

    app = FastAPI(title="Orders", lifespan=lifespan)

    @app.post("/orders", status_code=HTTPStatus.CREATED)
    async def place(order: NewOrder) -> dict[str, str]:
        """Place an order; the answer comes after the commit."""
        event = OrderPlaced(order_id=order.id, customer=order.customer, cents=order.cents)
        try:
            async with sessions.begin() as session:
                session.add(Order(**order.model_dump()))
                event_id = await append_async(session, event, key=order.id, revision=1)
        except IntegrityError:
            raise HTTPException(HTTPStatus.CONFLICT, "This order exists already.") from None
        return {"event_id": str(event_id)}

    @app.delete("/orders/{order_id}", status_code=HTTPStatus.NO_CONTENT)
    async def cancel(order_id: str) -> None:
        """Cancel an order; a second time changes nothing."""
        async with sessions.begin() as session:
            order = await session.get(Order, order_id, with_for_update=True)
            if order is None:
                raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such order.")
            if not order.is_cancelled:
                order.is_cancelled = True
                order.revision += 1
                await append_async(session, OrderCancelled(order_id=order_id), key=order_id, revision=order.revision)

    return app


def from_environment() -> FastAPI:
    """The service on the database that `ORDERS_DSN` names."""
    return create_app(os.environ[DSN_VARIABLE])
