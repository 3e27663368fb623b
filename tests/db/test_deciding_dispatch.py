"""Decided receipts and receipts of a projection on the whole way: dispatcher, transport, inbox, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from seapost.database.installer import GuardLevel
from seapost.database.pool import open_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.inbox.inbox import Inbox
from seapost.inbox.read import ReceiptReadRequest, read_receipt
from seapost.model.delivery import Claim
from seapost.model.outcome import Acknowledged, ErrorCode, Outcome, Retryable
from seapost.server.receiver import create_app
from seapost.telemetry.metrics import Metrics
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpTransport
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.protocol import Transport
from tests.kit import builders, serving
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.deciding import DEFINITIONS, RECEIPTS, SCALES, VIEWS, WEIGHED, Judge, JudgedReceipt, claim, running
from tests.kit.deciding import prepare_database as prepare
from tests.kit.dispatching import QUICK, QUICK_PROCESS, ROLE
from tests.kit.eventually import eventually_async
from tests.kit.kernel import Kernel
from tests.kit.parcels import parcels


@pytest.fixture(scope="module")
def shared(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give one database that is the producer's and the consumer's."""
    database = database_server.create(GuardLevel.STRICT)
    prepare(database)
    with database.connect(autocommit=True) as connection:
        Kernel(connection).activate("1", DEFINITIONS["1"])
        parcels().register(connection, actor="tester")
    yield database
    database_server.drop(database)


class LosingFirst:
    """A transport whose first answer is lost on the way back, after the consumer committed."""

    def __init__(self, behind: Transport) -> None:
        self._behind = behind
        self.lost: list[Outcome] = []

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """Deliver; say of the first call that no answer came."""
        outcomes = await self._behind.deliver(claims, timeout_seconds=timeout_seconds)
        if self.lost:
            return outcomes
        self.lost += outcomes
        return [Retryable(ErrorCode.TIMEOUT, answered=False)] * len(claims)

    async def aclose(self) -> None:
        """Close the transport behind."""
        await self._behind.aclose()


@asynccontextmanager
async def delivering(
    database: TestDatabase, inboxes: Sequence[Inbox], *, over: str
) -> AsyncGenerator[list[LosingFirst]]:
    """Run consumers, and a dispatcher that reaches them in process or over HTTP; each first answer is lost."""
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(database.dsn, part="dispatcher", role=ROLE))
        served = [(await stack.enter_async_context(running(database, inbox))).receiving for inbox in inboxes]
        url = await stack.enter_async_context(serving.serving(create_app(served, verifier=None)))
        transports: list[LosingFirst] = []
        for receiving in served:
            if over == "http":
                transports.append(LosingFirst(HttpTransport(url, policy=AddressPolicy.allowing("127.0.0.1"))))
            else:
                transports.append(LosingFirst(InProcessTransport(receiving.receive)))
            stack.push_async_callback(transports[-1].aclose)
        destinations = [
            Destination(replace(QUICK, name=inbox.destination), transport)
            for inbox, transport in zip(inboxes, transports, strict=True)
        ]
        dispatcher = Dispatcher(pool, destinations, settings=QUICK_PROCESS, receipts=RECEIPTS, metrics=Metrics())
        task = asyncio.create_task(dispatcher.run())
        try:
            yield transports
        finally:
            dispatcher.stop()
            await asyncio.wait_for(task, 30)


@pytest.mark.req("DLV-19", "DLV-20", "RCP-14", "RCP-39", "RCP-58", "SET-11")
@pytest.mark.parametrize("over", ["in process", "http"])
async def test_a_receipt_of_the_applications_own_type_settles_its_delivery(shared: TestDatabase, over: str) -> None:
    """The answer that was lost and the one that was believed are the same bytes; the stored proof is the inbox's."""
    judge = Judge()
    text = builders.envelope(WEIGHED, payload={"do": "apply"})
    event_id = builders.event_id_of(text)
    async with delivering(shared, [judge.inbox(), parcels().inbox], over=over) as transports:
        with shared.connect(autocommit=True) as connection:
            kernel = Kernel(connection)
            kernel.append(text)
            await eventually_async(
                lambda: {kernel.status(event_id, name) for name in (SCALES, VIEWS)} == {"acknowledged"},
                what="both acknowledgements",
            )
            stored = kernel.rows(
                "select a.receipt_ref, encode(a.receipt_digest, 'hex') from seapost.delivery_acknowledgement as a"
                " where a.event_id = %s order by a.destination",
                event_id,
            )
            proved = kernel.rows(
                "select receipt_ref, receipt_digest from seapost.inbox_receipts where event_id = %s order by consumer",
                event_id,
            )
            assert stored == proved
            assert len(stored) == 2
            assert kernel.defects() == []
    assert judge.calls == [event_id]
    for transport in transports:
        assert all(isinstance(outcome, Acknowledged) for outcome in transport.lost)


@pytest.mark.req("RCP-58", "RCP-59", "NEG-11", "RCP-57")
async def test_the_kernels_receipt_read_knows_decided_receipts(shared: TestDatabase) -> None:
    """Found with the same bytes as answered; one field that differs makes it conflicting."""
    judge = Judge()
    held = claim()
    async with running(shared, judge.inbox()) as behind:
        (answer,) = await behind.receive(held)
        assert isinstance(answer, Acknowledged)
        receipt = JudgedReceipt.decode(answer.receipt)
        arguments: dict[str, Any] = {
            "destination": SCALES,
            "consumerName": "judge",
            "eventId": receipt.event_id,
            "eventType": WEIGHED,
            "eventSchemaVersion": "1",
            "eventEnvelopeDigestAlgorithmVersion": "jcs-sha256-v1",
            "eventEnvelopeSha256": receipt.event_envelope_sha256,
            "receiptType": "JudgedReceipt",
            "receiptRef": receipt.judged_receipt_ref,
            "receiptSchemaVersion": "1",
            "receiptDigestAlgorithmVersion": "jcs-sha256-v1",
            "receiptDigest": receipt.judged_receipt_digest,
        }

        async def read(**changes: str) -> tuple[str, str | None, str | None]:
            request = ReceiptReadRequest.decode(json.dumps({**arguments, **changes}))
            result = await read_receipt(behind.receiving, request)
            return result.result, result.receipt, result.ack

        assert await read() == ("found", answer.receipt.decode(), answer.ack.decode())
        assert await read(eventId=str(builders.new_event_id())) == ("not_found", None, None)
        for name, value in (
            ("destination", VIEWS),
            ("consumerName", "viewer"),
            ("eventType", "parcel.lost@1"),
            ("eventSchemaVersion", "2"),
            ("eventEnvelopeSha256", "0" * 64),
            ("receiptType", "ViewReceipt"),
            ("receiptRef", "another"),
            ("receiptSchemaVersion", "2"),
            ("receiptDigest", "0" * 64),
        ):
            assert await read(**{name: value}) == ("conflicting", None, None), name
