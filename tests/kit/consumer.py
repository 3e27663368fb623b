"""A consumer for tests: an inbox over a real database, whose handlers do what the payload of the event tells them.

Each handler writes one row into `effect` for the event, without a unique key: an event applied twice shows as two
rows, an event half applied as a row without a receipt.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, LiteralString
from uuid import UUID, uuid4

from psycopg import AsyncConnection, Connection

from seapost.contracts.events import Event
from seapost.database.pool import AsyncPool, RoleTimeouts, SyncPool, open_pool, open_sync_pool
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving
from seapost.inbox.received import Received
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member
from seapost.model.errors import Reject, Retry
from seapost.transport.protocol import DeliveryRequest, pack
from tests.kit import builders
from tests.kit.database import TestDatabase

NAME = "billing"
ORDERED = "order.placed@1"
PAID = "order.paid@1"
UNHANDLED = "order.renamed@1"
ROUTES = (ORDERED, PAID, UNHANDLED)

DEFINITION = builders.canonical(
    builders.definition_document("7", [builders.member(kind, NAME, consumerName=NAME) for kind in ROUTES])
)
QUAD = DefinitionQuad("7", "1", "jcs-sha256-v1", sha256(DEFINITION).hexdigest())


class Ordered(Event, type=ORDERED):
    """Handled by a plain function; `do` is what it shall do."""

    do: str
    note: str = ""


class Paid(Event, type=PAID):
    """Handled by an `async def`; `do` is what it shall do."""

    do: str


EFFECT = "insert into public.effect (event_id, colour) values (%s, %s)"


@dataclass
class Script:
    """What else the handlers of one test may do, by the word in the payload."""

    sync: dict[str, Callable[[Connection[Any], Ordered], None]] = field(
        default_factory=dict[str, Callable[[Connection[Any], Ordered], None]]
    )
    calls: list[tuple[str, UUID]] = field(default_factory=list[tuple[str, UUID]])
    received: list[Received] = field(default_factory=list[Received])


def scripted_inbox(script: Script) -> Inbox:
    """An inbox with one handler of each colour; `order.renamed@1` has none."""
    inbox = Inbox(NAME)

    @inbox.consumer(Ordered)
    def ordered(transaction: Connection[Any], event: Ordered, received: Received) -> None:
        script.calls.append((event.do, received.event_id))
        script.received.append(received)
        transaction.execute(EFFECT, (received.event_id, "sync"))
        if event.do in script.sync:
            script.sync[event.do](transaction, event)
        else:
            _obey(event.do)

    @inbox.consumer(Paid)
    async def paid(transaction: AsyncConnection[Any], event: Paid, received: Received) -> None:
        script.calls.append((event.do, received.event_id))
        await transaction.execute(EFFECT, (received.event_id, "async"))
        if event.do == "commit":
            await transaction.commit()
        _obey(event.do)

    return inbox


def _obey(word: str) -> None:
    match word:
        case "retry":
            raise Retry("not yet", after_seconds=7.5, code="revision_gap")
        case "retry strangely":
            raise Retry("not yet", after_seconds=-1.0, code="schema_invalid")
        case "reject":
            raise Reject("never", code="schema_invalid")
        case "reject strangely":
            raise Reject("never", code="timeout")
        case "fail":
            raise LookupError("the customer's name is Ada")
        case _:
            pass


@dataclass
class Consumer:
    """A running inbox and its database."""

    database: TestDatabase
    receiving: Receiving
    script: Script
    pool: AsyncPool
    sync_pool: SyncPool

    def effects(self) -> list[UUID]:
        """The events with an effect, one entry for each time."""
        return self._column("select event_id from public.effect order by event_id")

    def receipts(self) -> list[UUID]:
        """The events with a receipt."""
        return self._column("select event_id from seapost.inbox_receipts order by event_id")

    def _column(self, query: LiteralString) -> list[UUID]:
        with self.database.connect(autocommit=True) as connection:
            return [row[0] for row in connection.execute(query)]


@asynccontextmanager
async def consumer(
    database: TestDatabase,
    *,
    timeouts: RoleTimeouts | None = None,
    wait_seconds: float = 5.0,
    registered: bool = True,
    inbox: Inbox | None = None,
) -> AsyncGenerator[Consumer]:
    """Run the scripted inbox, or another one, as the consumer's role over this database."""
    with database.connect(autocommit=True) as connection:
        connection.execute("create table public.effect (event_id uuid not null, colour text not null)")
        connection.execute("grant select, insert on public.effect to seapost_consumer")
        if registered:
            connection.execute("select seapost.delivery_set_register_v1(%s, 'test', 'tester')", (DEFINITION,))
    script = Script()
    limits = timeouts or RoleTimeouts()
    async with open_pool(
        database.dsn, part="inbox", role="seapost_consumer", role_timeouts=limits, wait_seconds=wait_seconds
    ) as pool:
        with open_sync_pool(
            database.dsn, part="inbox", role="seapost_consumer", role_timeouts=limits, wait_seconds=wait_seconds
        ) as sync_pool:
            async with Receiving(inbox or scripted_inbox(script), pool, sync_pool) as receiving:
                yield Consumer(database, receiving, script, pool, sync_pool)


# Deliveries ------------------------------------------------------------------------------------------------


def claim(
    event_type: str = ORDERED,
    do: str = "apply",
    *,
    envelope: bytes | None = None,
    definition: DefinitionQuad = QUAD,
    attempt_number: int = 1,
    consumer_name: str = NAME,
    **changes: object,
) -> Claim:
    """A claim as the dispatcher would hold it; `envelope` or `changes` replace the usual envelope's text or fields."""
    text = builders.envelope(event_type, **{"payload": {"do": do}, **changes}) if envelope is None else envelope
    return Claim(
        destination=NAME,
        fence=Fence(builders.event_id_of(text), 41, uuid4()),
        attempt_number=attempt_number,
        failure_count=0,
        lost_count=0,
        company=1,
        member=Member(1, definition, event_type, "1", NAME, consumer_name, True, "ConsumerReceipt", "1", None),  # noqa: FBT003
        event_digest=sha256(text).digest(),
        envelope=text,
        available_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def request_of(claims: Sequence[Claim]) -> DeliveryRequest:
    """The one request that carries these claims."""
    (parcel,) = pack(claims)
    return parcel.request
