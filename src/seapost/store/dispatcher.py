"""The declaration that a dispatcher sleeps (`functions/dispatcher/`), made on its LISTEN connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seapost.store.calls import call_async

if TYPE_CHECKING:
    import psycopg


async def sleep(connection: psycopg.AsyncConnection[Any], destination: str) -> bool:
    """Declare this session asleep for the destination; False means not declared (claim again)."""
    [(declared,)] = await call_async(connection, "select seapost.dispatcher_sleep_v1(%s)", (destination,))
    return declared


async def wake(connection: psycopg.AsyncConnection[Any], destination: str) -> bool:
    """Withdraw the declaration; False when this session had not made it."""
    [(withdrawn,)] = await call_async(connection, "select seapost.dispatcher_wake_v1(%s)", (destination,))
    return withdrawn
