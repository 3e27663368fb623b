"""The targeted receipt read, in process and over HTTP: found, not_found or conflicting, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seapost.inbox.read import ReceiptReadRequest, read_receipt
from seapost.model.outcome import Acknowledged
from seapost.server.receiver import create_app
from seapost.transport import token, wire
from seapost.transport.token import TokenSigner, TokenVerifier
from tests.kit.consumer import NAME, ORDERED, Consumer, claim, consumer, request_of
from tests.kit.database import TestDatabase

Known = tuple[Consumer, dict[str, str], Acknowledged]


@pytest.fixture
async def known(database: TestDatabase) -> AsyncIterator[Known]:
    """Give a consumer that applied one event, the arguments that read its receipt, and its answer."""
    async with consumer(database) as behind:
        held = claim(ORDERED)
        (answer,) = await behind.receiving.receive(request_of([held]))
        assert isinstance(answer, Acknowledged)
        receipt = json.loads(answer.receipt)
        arguments = {
            "destination": NAME,
            "consumerName": NAME,
            "eventId": str(held.fence.event_id),
            "eventType": ORDERED,
            "eventSchemaVersion": "1",
            "eventEnvelopeDigestAlgorithmVersion": "jcs-sha256-v1",
            "eventEnvelopeSha256": held.event_digest.hex(),
            "receiptType": "ConsumerReceipt",
            "receiptRef": receipt["consumerReceiptRef"],
            "receiptSchemaVersion": "1",
            "receiptDigestAlgorithmVersion": "jcs-sha256-v1",
            "receiptDigest": receipt["consumerReceiptDigest"],
        }
        yield behind, arguments, answer


async def read(behind: Consumer, arguments: dict[str, str]) -> tuple[str, str | None, str | None]:
    """The three parts of the answer."""
    result = await read_receipt(behind.receiving, ReceiptReadRequest.decode(json.dumps(arguments)))
    return result.result, result.receipt, result.ack


@pytest.mark.req("RCP-58", "AMB-44", "DLV-08", "DLV-20")
async def test_exact_identity_finds_the_same_bytes(known: Known) -> None:
    """A read that names everything right returns receipt and ack as they were first returned."""
    behind, arguments, answer = known
    assert await read(behind, arguments) == ("found", answer.receipt.decode(), answer.ack.decode())


@pytest.mark.req("AMB-44", "RCP-58")
async def test_event_never_received_is_not_found(known: Known) -> None:
    """An event without a receipt here is not_found."""
    behind, arguments, _ = known
    assert await read(behind, arguments | {"eventId": str(claim().fence.event_id)}) == ("not_found", None, None)


@pytest.mark.req("NEG-11", "RCP-58", "RCP-59", "AMB-44")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("destination", "search"),
        ("consumerName", "search"),
        ("eventType", "order.paid@1"),
        ("eventSchemaVersion", "2"),
        ("eventEnvelopeDigestAlgorithmVersion", "jcs-sha256-v2"),
        ("eventEnvelopeSha256", "0" * 64),
        ("receiptType", "OtherReceipt"),
        ("receiptRef", "another"),
        ("receiptSchemaVersion", "2"),
        ("receiptDigestAlgorithmVersion", "jcs-sha256-v2"),
        ("receiptDigest", "0" * 64),
    ],
)
async def test_any_difference_is_conflicting(known: Known, name: str, value: str) -> None:
    """A read that is wrong in one field is conflicting and shows nothing of the stored receipt."""
    behind, arguments, _ = known
    assert await read(behind, arguments | {name: value}) == ("conflicting", None, None)


@pytest.mark.req("NEG-11", "RCP-59", "REF-11")
async def test_read_over_http_needs_a_token_for_these_arguments(known: Known) -> None:
    """The endpoint answers a token whose bindings are the arguments, and refuses one for anything else."""
    behind, arguments, answer = known
    key = Ed25519PrivateKey.generate()
    signer = TokenSigner(key, issuer="test", workload="dispatcher")
    app = create_app([behind.receiving], verifier=TokenVerifier([key.public_key()], issuer="test"))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://receiver") as client:

        async def post(body: object, **changes: Any) -> httpx.Response:
            claims: dict[str, Any] = {
                "audience": NAME,
                "scope": token.RECEIPT_SCOPE,
                "purpose": token.RECEIPT_PURPOSE,
                "bindings": arguments,
                **changes,
            }
            headers = {"authorization": f"Bearer {signer.mint(**claims)}", "content-type": "application/json"}
            return await client.post(wire.RECEIPT_PATH, content=json.dumps(body), headers=headers)

        found = await post(arguments)
        assert (found.status_code, found.json()["result"]) == (200, "found")
        assert found.json()["receipt"] == answer.receipt.decode()
        assert (await post(arguments, scope=token.DELIVER_SCOPE)).status_code == 403
        assert (await post(arguments, audience="search")).status_code == 403
        fewer = {name: value for name, value in arguments.items() if name != "receiptRef"}
        assert (await post(arguments, bindings=fewer)).status_code == 403
        assert (await post(arguments | {"receiptRef": "another"})).status_code == 403
        assert (await post(fewer)).status_code == 400
        assert (await post(arguments | {"latest": True})).status_code == 400
        assert (await post([])).status_code == 400


async def test_readiness_asks_the_database(known: Known) -> None:
    """With its database in reach the receiver is ready."""
    behind, _, _ = known
    app = create_app([behind.receiving], verifier=None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://receiver") as client:
        assert (await client.get("/readyz")).json() == {"status": "ok"}
