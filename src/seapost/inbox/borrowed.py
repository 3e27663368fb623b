"""The consumer's transaction where another database library holds it: receipts, effects and one commit, as ever.

Authority: the library's own commit. `inbox.drivers` opens a transaction and hands out what its handlers work with (a
Session, a connection); receipts are written through that same transaction, so the unit is the one of
`seapost.inbox.transaction`: receipts first, then the effects of the new events, then one commit (F32).

Failures: any exception leaves nothing. A handler that ended the transaction, or swallowed the error that aborted it, is
found after the handlers by asking the database for the start of its transaction, which must be that of the receipts.
Where the library allows it, commit and rollback by a handler are refused before they happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from time import perf_counter

from seapost.inbox.drivers import AsyncOpened, AsyncTransactions, Opened, Transactions
from seapost.inbox.examine import Accepted
from seapost.inbox.failures import HandlerFailed, NotOpened, TransactionLost
from seapost.inbox.inbox import Inbox
from seapost.inbox.transaction import Committed, new_receipts, span_attributes
from seapost.telemetry import metrics, tracing


def apply(transactions: Transactions, inbox: Inbox, items: Sequence[Accepted]) -> Committed:
    """Run one batch of synchronous handlers; the events of `items` are distinct.

    Raises:
        HandlerFailed: a handler raised; nothing of the batch was committed.
        TransactionLost: a handler ended the transaction.
        NotOpened: no transaction was to be had.
        Exception: what the library raises when the database refused or was lost.
    """
    with ExitStack() as stack:
        opened = _enter(stack, transactions)
        known, moment = opened.receive(inbox.name, new_receipts(inbox, items))
        if len(known) < len(items):
            for position, item in enumerate(items):
                if item.event_id not in known:
                    _handle(inbox, opened, position, item)
            if opened.committed_at() != moment:
                raise TransactionLost
    return Committed(known, moment)


async def apply_async(transactions: AsyncTransactions, inbox: Inbox, items: Sequence[Accepted]) -> Committed:
    """The same as `apply`, for asynchronous handlers."""
    async with AsyncExitStack() as stack:
        opened = await _enter_async(stack, transactions)
        known, moment = await opened.receive(inbox.name, new_receipts(inbox, items))
        if len(known) < len(items):
            for position, item in enumerate(items):
                if item.event_id not in known:
                    await _handle_async(inbox, opened, position, item)
            if await opened.committed_at() != moment:
                raise TransactionLost
    return Committed(known, moment)


def _enter(stack: ExitStack, transactions: Transactions) -> Opened:
    try:
        return stack.enter_context(transactions.open())
    except Exception as error:
        raise NotOpened from error


async def _enter_async(stack: AsyncExitStack, transactions: AsyncTransactions) -> AsyncOpened:
    try:
        return await stack.enter_async_context(transactions.open())
    except Exception as error:
        raise NotOpened from error


def _handle(inbox: Inbox, opened: Opened, position: int, item: Accepted) -> None:
    started = perf_counter()
    try:
        with tracing.handling(inbox.name, item.traceparent, span_attributes(item)):
            item.handler.call(opened.handed, item.event, item)
        opened.flush()
    except Exception as error:
        raise HandlerFailed(position) from error
    finally:
        metrics.apply_seconds(inbox.name, perf_counter() - started)


async def _handle_async(inbox: Inbox, opened: AsyncOpened, position: int, item: Accepted) -> None:
    started = perf_counter()
    try:
        with tracing.handling(inbox.name, item.traceparent, span_attributes(item)):
            await item.handler.call_async(opened.handed, item.event, item)
        await opened.flush()
    except Exception as error:
        raise HandlerFailed(position) from error
    finally:
        metrics.apply_seconds(inbox.name, perf_counter() - started)
