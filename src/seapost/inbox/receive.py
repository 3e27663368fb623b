"""Receiving a batch: examine, apply in as few transactions as the events allow, answer in order.

Authority: the receipt table of the consumer's database. What it holds is the answer for ever; what this
module keeps in memory only decides how events are grouped into transactions.

States of one delivery here: refused by `examine`, applied (new), known (applied before), failed. Only the
first and the last end without a receipt.

Failures: a batch is one transaction. When a handler raises, nothing of it stays; the event that raised is
tried once more alone, and those before and after it go on as batches of their own. When the batch failed
for another reason, its halves are tried. So one bad event never harms its neighbours, and receipt and
effect are atomic in every case. When no connection is to be had, all that is left is answered at once.

A synchronous handler runs in a thread of the inbox's own, never more of them than the pool has connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from seapost.database.pool import AsyncPool, SyncPool
from seapost.inbox import borrowed
from seapost.inbox.deciding import TRANSACTION_EVENTS_MAX, DecidingInbox
from seapost.inbox.deciding_transaction import decide
from seapost.inbox.directory import MemberDirectory
from seapost.inbox.drivers import AsyncTransactions, Transactions
from seapost.inbox.examine import Accepted, Examiner, Refused
from seapost.inbox.failures import UNREACHABLE, HandlerFailed, TransactionLost, outcome_of
from seapost.inbox.inbox import Inbox
from seapost.inbox.transaction import Committed, apply, apply_async
from seapost.model.errors import InvalidSetting, Reject, Retry
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.store.inbox import KnownReceipt
from seapost.telemetry import metrics
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger, new_reference
from seapost.transport.protocol import DeliveryRequest, IncomingDelivery

_log = get_logger("seapost.inbox")

_SCHEMA_CODES = frozenset({ErrorCode.SCHEMA_UNKNOWN, ErrorCode.SCHEMA_INVALID, ErrorCode.VERSION_UNSUPPORTED})

Apply = Callable[[Sequence[Accepted]], Awaitable[Committed]]


class Receiving:
    """An inbox with the pools of its database; `receive` is the `Receiver` that transports call.

    Args:
        pool: for the registry, receipt reads and asynchronous handlers. Its sessions carry the time limits
            of the consumer's role: a handler that waits too long inside the transaction loses it.
        sync_pool: needed when a handler is a plain function.

    Both pools belong to the caller, who opens and closes them. Entering and leaving `Receiving` starts and
    stops the threads; leaving waits for handlers that still run.
    """

    def __init__(self, inbox: Inbox, pool: AsyncPool, sync_pool: SyncPool | None = None) -> None:
        if sync_pool is None and needs_sync_pool(inbox):
            raise InvalidSetting(f"The inbox {inbox.name} has synchronous handlers and needs a synchronous pool.")
        self.inbox = inbox.close()
        self.pool = pool
        self._sync_pool = sync_pool
        self._directory = MemberDirectory(pool)
        self._threads: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for running synchronous handlers and stop the threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        if isinstance(self.inbox.transactions, Transactions):
            await asyncio.to_thread(self.inbox.transactions.close)

    async def ready(self) -> None:
        """Raise what the database raises unless it answers and holds the registry."""
        await self._directory.refresh()

    async def receive(self, request: DeliveryRequest) -> list[Outcome]:
        """One outcome for each delivery, in order; a bad event or database never makes it raise."""
        deliveries = request.deliveries
        if (request.destination, request.consumer_name) != (self.inbox.destination, self.inbox.name):
            return [NonRetryable(ErrorCode.IDENTITY_CONFLICT)] * len(deliveries)
        try:
            await self._directory.know({delivery.definition.version for delivery in deliveries})
        except Exception as error:  # noqa: BLE001 - the registry cannot be read: try again later
            return [self._unavailable(error)] * len(deliveries)
        outcomes: dict[int, Outcome] = {}
        accepted: dict[int, Accepted] = {}
        examiner = Examiner(self.inbox, self._directory)
        for position, delivery in enumerate(deliveries):
            found = examiner.examine(delivery)
            if isinstance(found, Accepted):
                accepted[position] = found
            else:
                outcomes[position] = self._refused(delivery, found)
        await self._apply_all(accepted, outcomes)
        self._count(outcomes)
        return [outcomes[position] for position in range(len(deliveries))]

    async def _apply_all(self, accepted: dict[int, Accepted], outcomes: dict[int, Outcome]) -> None:
        """Apply each event once; a second copy of it gets the first one's outcome."""
        first: dict[int, int] = {}  # by the number that is the event's id, which hashes and sorts faster than the id
        batch: list[int] = []
        later: list[int] = []
        copies: list[tuple[int, int]] = []
        for position, item in accepted.items():
            original = first.setdefault(item.delivery.event_id.int, position)
            if original == position:
                batch.append(position)
            elif accepted[original].delivery.digest == item.delivery.digest:
                copies.append((position, original))
            else:
                later.append(position)  # the same id with other content: judged against the committed receipt
        for positions in (batch, *([position] for position in later)):
            for is_async in (False, True):
                colour = {p: accepted[p] for p in positions if accepted[p].handler.is_async is is_async}
                if colour:
                    await self._apply(self._apply_async if is_async else self._apply_sync, colour, outcomes)
        for position, original in copies:
            outcomes[position] = outcomes[original]

    async def _apply(self, transaction: Apply, items: dict[int, Accepted], outcomes: dict[int, Outcome]) -> None:
        """Find the outcomes of items by position; see the module's text for how a batch is split."""
        ordered = sorted(items, key=lambda position: items[position].delivery.event_id.int)
        size = TRANSACTION_EVENTS_MAX if isinstance(self.inbox, DecidingInbox) else len(ordered)
        waiting = [ordered[start : start + size] for start in reversed(range(0, len(ordered), size))]
        while waiting:
            positions = waiting.pop()
            batch = [items[position] for position in positions]
            try:
                committed = await transaction(batch)
            except UNREACHABLE as error:
                outcome = self._unavailable(error)
                outcomes.update((position, outcome) for part in (positions, *waiting) for position in part)
                return
            except Exception as error:  # noqa: BLE001 - a handler may raise anything
                if len(batch) == 1:
                    outcomes[positions[0]] = self._failed(batch[0], error)
                else:
                    waiting += reversed(_split(positions, error))
            else:
                for position, item in zip(positions, batch, strict=True):
                    outcomes[position] = self._answer(item, committed)
                without = len(committed.turned_away)
                duplicates = sum(1 for known in committed.known.values() if known.result == "duplicate")
                metrics.received(self.inbox.name, "applied", number=len(batch) - without - len(committed.known))
                metrics.received(self.inbox.name, "duplicate", number=duplicates)

    async def _apply_async(self, items: Sequence[Accepted]) -> Committed:
        transactions = self.inbox.transactions
        if isinstance(transactions, AsyncTransactions):
            return await borrowed.apply_async(transactions, self.inbox, items)
        return await apply_async(self.pool, self.inbox, items)

    async def _apply_sync(self, items: Sequence[Accepted]) -> Committed:
        transactions = self.inbox.transactions
        loop = asyncio.get_running_loop()
        if isinstance(transactions, Transactions):
            threads = self._started(transactions.threads)
            return await loop.run_in_executor(threads, borrowed.apply, transactions, self.inbox, items)
        assert self._sync_pool is not None  # noqa: S101 - checked when the inbox was closed
        threads = self._started(self._sync_pool.max_size)
        if isinstance(self.inbox, DecidingInbox):
            return await loop.run_in_executor(threads, decide, self._sync_pool, self.inbox, items)
        return await loop.run_in_executor(threads, apply, self._sync_pool, self.inbox, items)

    def _started(self, size: int) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(size, f"seapost-inbox-{self.inbox.name}")
        return self._threads

    def _answer(self, item: Accepted, committed: Committed) -> Outcome:
        """The outcome of an event whose transaction committed."""
        known = committed.known.get(item.event_id) if committed.known else None
        writer = self.inbox.receipts
        if known is None and item.event_id in committed.decided:
            return committed.decided[item.event_id]
        if known is None and item.event_id in committed.turned_away:
            return self._failed(item, committed.turned_away[item.event_id])
        if known is None:
            assert committed.committed_at is not None  # noqa: S101 - the batch had a new event
            reference = writer.reference(item.subject)
            return writer.answer(
                item.subject, candidate=item.candidate, reference=reference, committed_at=committed.committed_at
            )
        if known.result != "duplicate":
            return self._conflict(item, known)
        return writer.answer(
            item.subject, candidate=known.candidate, reference=known.receipt_ref, committed_at=known.committed_at
        )

    def _conflict(self, item: Accepted, known: KnownReceipt) -> Outcome:
        reference = new_reference()
        _log.error(
            LogEvent.DIGEST_CONFLICT,
            consumer=self.inbox.name,
            event_id=item.event_id,
            applied_digest=known.event_digest.hex(),
            received_digest=item.subject.digest,
            reference=reference,
        )
        return NonRetryable(ErrorCode.DIGEST_CONFLICT, reference)

    def _failed(self, item: Accepted, error: Exception) -> Outcome:
        """The outcome of an event whose own transaction failed, with the log record it refers to."""
        cause = error.__cause__ if isinstance(error, HandlerFailed) and error.__cause__ is not None else error
        reference = new_reference()
        outcome = outcome_of(cause, reference)
        fields = {
            "consumer": self.inbox.name,
            "event_id": item.event_id,
            "event_type": item.subject.event_type,
            "reference": reference,
        }
        match cause:
            case Retry():
                _log.info(LogEvent.HANDLER_FAILED, code=cause.code, **fields)
            case Reject():
                _log.warning(LogEvent.HANDLER_REJECTED, code=cause.code, **fields)
            case _:
                by_handler = isinstance(error, HandlerFailed | TransactionLost)
                event = LogEvent.HANDLER_FAILED if by_handler else LogEvent.TRANSACTION_FAILED
                _log.error(event, exc_info=cause, **fields)
        return outcome

    def _refused(self, delivery: IncomingDelivery, refused: Refused) -> Outcome:
        """Log a delivery that never reached a transaction; the outcome refers to the record."""
        reference = new_reference()
        outcome = refused.outcome
        assert not isinstance(outcome, Acknowledged)  # noqa: S101 - only a commit acknowledges
        _log.warning(
            LogEvent.EVENT_REFUSED,
            consumer=self.inbox.name,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            schema_version=delivery.schema_version,
            code=outcome.code,
            rule=refused.rule,
            pointer=refused.pointer,
            reference=reference,
        )
        if outcome.code in _SCHEMA_CODES:
            metrics.schema_reject(self.inbox.name, delivery.event_type, delivery.schema_version, outcome.code)
        if isinstance(outcome, Retryable):
            return Retryable(outcome.code, reference)
        return NonRetryable(outcome.code, reference)

    def _unavailable(self, error: Exception) -> Outcome:
        """The database cannot be asked; that says nothing about any of the events."""
        reference = new_reference()
        _log.error(LogEvent.INBOX_UNAVAILABLE, consumer=self.inbox.name, reference=reference, exc_info=error)
        return outcome_of(error, reference)

    def _count(self, outcomes: dict[int, Outcome]) -> None:
        for outcome in outcomes.values():
            match outcome:
                case Acknowledged():
                    pass  # counted as applied or duplicate where that was known
                case Retryable():
                    metrics.received(self.inbox.name, "retryable", outcome.code)
                case NonRetryable():
                    metrics.received(self.inbox.name, "non_retryable", outcome.code)


def needs_sync_pool(inbox: Inbox) -> bool:
    """Whether a handler is a plain function that works on a psycopg connection."""
    return inbox.transactions is None and any(not handler.is_async for handler in inbox.handlers.values())


def _split(batch: list[int], error: Exception) -> list[list[int]]:
    """The parts to try after a failed batch of positions: around the event that raised, or its halves."""
    if isinstance(error, HandlerFailed):
        at = error.position
        parts = [batch[:at], [batch[at]], batch[at + 1 :]]
    else:
        middle = len(batch) // 2
        parts = [batch[:middle], batch[middle:]]
    return [part for part in parts if part]
