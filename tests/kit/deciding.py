"""Deciding consumers for tests: receipts that say what was decided, and handlers that obey the payload."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, LiteralString
from uuid import UUID, uuid4

from psycopg import Connection

from seapost.contracts.events import Event
from seapost.contracts.fields import Algorithm, Digest, Identifier, Timestamp
from seapost.contracts.receipt_registry import ReceiptRegistry, kernel_receipts
from seapost.contracts.receipts import ProjectionReceipt, Receipt
from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.deciding import Arrived, Deciding, DecidingInbox
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member, ProjectionTarget
from seapost.model.errors import ContractError, Reject, Retry
from seapost.model.outcome import Outcome
from seapost.testing.databases import TestDatabase
from seapost.transport.protocol import pack
from tests.kit import builders

WEIGHED: Final = "parcel.weighed@1"
JUDGE: Final = "judge"
SCALES: Final = "scales"
VIEWER: Final = "viewer"
VIEWS: Final = "views"
EFFECT: Final = "insert into public.effect (event_id, note) values (%s, %s)"


class Weighed(Event, type=WEIGHED, producer="shop", aggregate="parcel"):
    """`do` is what the handler shall do."""

    do: str


class JudgedReceipt(Receipt, prefix="judgedReceipt", outside=("committedAt",)):
    """The receipt of the judge, which says the verdict."""

    judged_receipt_ref: Identifier
    judged_receipt_schema_version: Literal["1"]
    judged_receipt_digest_algorithm_version: Algorithm
    judged_receipt_digest: Digest
    verdict: Literal["accepted", "held", "forged"]
    committed_at: Timestamp


class ViewReceipt(ProjectionReceipt, prefix="viewReceipt", outside=("appliedAt",)):
    """The receipt of a projection."""

    view_receipt_ref: Identifier
    view_receipt_schema_version: Literal["1"]
    view_receipt_digest_algorithm_version: Algorithm
    view_receipt_digest: Digest
    applied_at: Timestamp


def _compare(receipt: Receipt, envelope: object) -> None:
    del envelope
    if isinstance(receipt, JudgedReceipt) and receipt.verdict == "forged":
        message = "No honest judge says this"
        raise ContractError(message, pointer="/verdict", rule="receipt_verdict")


def receipt_types() -> ReceiptRegistry:
    """The kernel's receipt and the two of this module."""
    registry = kernel_receipts()
    registry.register(JudgedReceipt, ack_kind="judged_receipt", compare=_compare)
    registry.register(ViewReceipt, ack_kind="view_receipt")
    return registry.close()


RECEIPTS: Final = receipt_types()


def _definition(version: str, view_version: str) -> bytes:
    target = {"state": "required", "projectionName": "parcels", "projectionVersion": view_version}
    lines = [
        builders.member(WEIGHED, SCALES, consumerName=JUDGE, expectedReceiptType="JudgedReceipt"),
        builders.member(
            WEIGHED, VIEWS, consumerName=VIEWER, expectedReceiptType="ViewReceipt", projectionTarget=target
        ),
    ]
    return builders.canonical(builders.definition_document(version, lines))


DEFINITIONS: Final = {"1": _definition("1", "1"), "2": _definition("2", "2")}
"""Two definitions: the second one freezes version 2 of the projection."""

TABLES: Final = """
create table public.effect (event_id uuid not null, note text not null, at bigint generated always as identity);
grant select, insert on public.effect to seapost_consumer"""


def prepare_database(database: TestDatabase) -> None:
    """Register both definitions and make the table of the effects."""
    with database.connect(autocommit=True) as connection:
        connection.execute(TABLES)
        for candidate in DEFINITIONS.values():
            connection.execute("select seapost.delivery_set_register_v1(%s, 'test', 'tester')", (candidate,))


Act = Callable[[Connection[Any], Weighed, Deciding], object]


@dataclass
class Judge:
    """What the handler and `prepare` of one test do, and what they were called with."""

    acts: dict[str, Act] = field(default_factory=dict[str, Act])
    calls: list[UUID] = field(default_factory=list[UUID])
    contexts: list[Deciding] = field(default_factory=list[Deciding])
    prepared: list[Sequence[Arrived]] = field(default_factory=list[Sequence[Arrived]])
    preparing: Callable[[Sequence[Arrived]], Sequence[object]] | None = None

    def inbox(self) -> DecidingInbox:
        """The judge's inbox."""
        inbox = DecidingInbox(JUDGE, destination=SCALES, receipt=JudgedReceipt, receipts=RECEIPTS)
        _ = inbox.consumer(Weighed, prepare=self._prepare if self.preparing else None)(self._handle)
        return inbox

    def _prepare(self, items: Sequence[Arrived]) -> Sequence[object]:
        self.prepared.append(items)
        assert self.preparing is not None
        return self.preparing(items)

    def _handle(self, transaction: Connection[Any], event: Weighed, context: Deciding) -> Any:  # noqa: ANN401 - scripted
        self.calls.append(context.received.event_id)
        self.contexts.append(context)
        transaction.execute(EFFECT, (context.received.event_id, event.do))
        if event.do in self.acts:
            return self.acts[event.do](transaction, event, context)
        match event.do:
            case "hold":
                return Retry("the fence is not there yet", code="fence_unbindable")
            case "raise retry":
                raise Retry("not yet", code="owner_unreadable")
            case "raise reject":
                raise Reject("never", code="schema_invalid")
            case "fail":
                raise LookupError(event.do)
            case _:
                return accepted(context)


def accepted(context: Deciding, **changes: str) -> JudgedReceipt:
    """The receipt of an event that the judge accepts."""
    return JudgedReceipt.assemble(**{**context.common, "verdict": "accepted", **changes})


# Running ---------------------------------------------------------------------------------------------------


@dataclass
class Running:
    """An inbox that runs over a database."""

    database: TestDatabase
    receiving: Receiving

    async def receive(self, *claims: Claim) -> list[Outcome]:
        """Hand claims of one destination to the inbox."""
        (parcel,) = pack(claims)
        return await self.receiving.receive(parcel.request)

    def effects(self, *claims: Claim) -> list[str]:
        """The notes of these events' effects, in the order they were written."""
        return self._column("select note from public.effect where event_id = any (%s) order by at", claims)

    def receipts(self, *claims: Claim) -> set[UUID]:
        """Those of the events that have a receipt."""
        return set(self._column("select event_id from seapost.inbox_receipts where event_id = any (%s)", claims))

    def _column(self, query: LiteralString, claims: Sequence[Claim]) -> list[Any]:
        with self.database.connect(autocommit=True) as connection:
            return [row[0] for row in connection.execute(query, ([claim.fence.event_id for claim in claims],))]


@asynccontextmanager
async def running(database: TestDatabase, inbox: Inbox) -> AsyncGenerator[Running]:
    """Run an inbox as the consumer's role."""
    async with open_pool(database.dsn, part="inbox", role="seapost_consumer") as pool:
        with open_sync_pool(database.dsn, part="inbox", role="seapost_consumer") as sync_pool:
            async with Receiving(inbox, pool, sync_pool) as receiving:
                yield Running(database, receiving)


# Deliveries ------------------------------------------------------------------------------------------------


def claim(
    do: str = "apply",
    *,
    destination: str = SCALES,
    version: str = "1",
    aggregate: tuple[str, int] | None = None,
    envelope: bytes | None = None,
    **changes: object,
) -> Claim:
    """A claim of one event for the judge, or for the viewer; `aggregate` is the parcel and its revision."""
    if aggregate is not None:
        changes["aggregate"] = {"kind": "parcel", "id": aggregate[0], "revision": aggregate[1]}
    text = builders.envelope(WEIGHED, payload={"do": do}, **changes) if envelope is None else envelope
    quad = DefinitionQuad(version, "1", "jcs-sha256-v1", sha256(DEFINITIONS[version]).hexdigest())
    is_view = destination == VIEWS
    target = ProjectionTarget("parcels", version) if is_view else None
    receipt = "ViewReceipt" if is_view else "JudgedReceipt"
    consumer = VIEWER if is_view else JUDGE
    return Claim(
        destination=destination,
        fence=Fence(builders.event_id_of(text), 41, uuid4()),
        attempt_number=1,
        failure_count=0,
        lost_count=0,
        company=1,
        member=Member(1, quad, WEIGHED, "1", destination, consumer, True, receipt, "1", target),  # noqa: FBT003
        event_digest=sha256(text).digest(),
        envelope=text,
        available_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
