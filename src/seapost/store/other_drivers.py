"""The calls that run inside an application's own transaction, for drivers other than psycopg.

Each text is the call of `store.outbox` or `store.inbox` in another parameter style. With asyncpg the functions here do
what their psycopg twins do; the other libraries run the text themselves and only ask for the translation of errors.
No driver is imported here: whoever uses one has it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, Protocol
from uuid import UUID

from seapost.database.sqlstates import driver_error, error_of, sqlstate_of
from seapost.model.errors import SeapostError
from seapost.store.inbox import KnownReceipt, NewReceipt

APPEND_NAMED: Final = "select seapost.outbox_append_v1(:envelopes)"
"""For SQLAlchemy's `text`; the parameter is a list of bytes."""
APPEND_FORMAT: Final = "select seapost.outbox_append_v1(%s)"
"""For Django's cursor, over psycopg 3 or psycopg2; the parameter is a list of bytes."""

_APPEND: Final = "select seapost.outbox_append_v1($1)"
_RECEIVE_AT: Final = (
    "select seapost.inbox_committed_at_v1(), r.* from (values (1)) as one (n)"
    " left join seapost.inbox_receive_v1($1, $2, $3, $4, $5) as r on true"
)
COMMITTED_AT: Final = "select seapost.inbox_committed_at_v1()"


class AsyncpgConnection(Protocol):
    """What is used of `asyncpg.Connection`, or of the proxy that an asyncpg pool hands out."""

    async def fetchval(self, query: str, *args: Any) -> Any:  # noqa: ANN401 - as the driver declares it
        """The only value of a query."""
        ...

    async def fetch(self, query: str, *args: Any) -> list[Any]:
        """The rows of a query."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        ...


@contextmanager
def translated_cause() -> Generator[None]:
    """Raise the Seapost error in place of one of another driver, or of a library that wrapped a driver's.

    The driver's error is the innermost cause that has a SQLSTATE, and becomes the cause of ours: a wrapper's text may
    quote the parameters, which are whole events. Every other exception passes as it is.
    """
    try:
        yield
    except Exception as error:
        said = driver_error(error)
        ours = None if said is None else _error_for(said)
        if ours is None:
            raise
        raise ours from said


def _error_for(error: BaseException) -> SeapostError | None:
    """Our error for a driver's; asyncpg keeps message and detail on the error, the others in `diag`."""
    said = getattr(error, "diag", None)
    if said is None:
        return error_of(sqlstate_of(error), getattr(error, "message", None), getattr(error, "detail", None))
    return error_of(sqlstate_of(error), said.message_primary, said.message_detail)


async def append(connection: AsyncpgConnection, envelopes: Sequence[bytes]) -> int:
    """`store.outbox.append_async` on an asyncpg connection."""
    with translated_cause():
        return await connection.fetchval(_APPEND, envelopes)


async def receive_at(
    connection: AsyncpgConnection, *, consumer: str, receipts: Sequence[NewReceipt]
) -> tuple[dict[UUID, KnownReceipt], datetime]:
    """`store.inbox.receive_at_async` on an asyncpg connection."""
    with translated_cause():
        rows = await connection.fetch(
            _RECEIVE_AT,
            consumer,
            [item.event_id for item in receipts],
            [item.event_digest for item in receipts],
            [item.receipt_ref for item in receipts],
            [item.candidate for item in receipts],
        )
    return {row[1]: KnownReceipt(*row[1:]) for row in rows if row[1] is not None}, rows[0][0]


async def committed_at(connection: AsyncpgConnection) -> datetime:
    """`store.inbox.committed_at_async` on an asyncpg connection."""
    return await connection.fetchval(COMMITTED_AT)
