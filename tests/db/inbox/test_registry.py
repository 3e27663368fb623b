"""A delivery's coordinates are resolved in the consumer's own copy of the registry, never taken from the call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from seapost.inbox.inbox import Inbox
from seapost.model.delivery_set import DefinitionQuad
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from tests.kit import builders
from tests.kit.consumer import DEFINITION, NAME, ORDERED, QUAD, Consumer, Ordered, claim, consumer, request_of
from tests.kit.database import TestDatabase


@pytest.fixture
async def running(database: TestDatabase) -> AsyncIterator[Consumer]:
    """Give the scripted consumer over a database that knows no definition yet."""
    async with consumer(database, registered=False) as behind:
        yield behind


def register(behind: Consumer, candidate: bytes) -> None:
    """Register a definition in the consumer's database."""
    with behind.database.connect(autocommit=True) as connection:
        connection.execute("select seapost.delivery_set_register_v1(%s, 'test', 'tester')", (candidate,))


async def code_of(behind: Consumer, definition: DefinitionQuad = QUAD) -> tuple[type[Outcome], str]:
    """Kind and code of the outcome of one good event under this definition."""
    (outcome,) = await behind.receiving.receive(request_of([claim(ORDERED, definition=definition)]))
    return type(outcome), "" if isinstance(outcome, Acknowledged) else outcome.code.value


@pytest.mark.req("REF-11")
async def test_unknown_version_waits_and_another_digest_never_passes(
    running: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version not registered here is retryable until it is; a known version with another identity is a conflict."""
    monkeypatch.setattr("seapost.inbox.directory.REFRESH_SECONDS_MIN", 0.0)
    assert await code_of(running) == (Retryable, "dependency_unavailable")
    register(running, DEFINITION)
    assert await code_of(running) == (Acknowledged, "")
    for changed in (
        replace(QUAD, digest="0" * 64),
        replace(QUAD, schema_version="2"),
        replace(QUAD, digest_algorithm_version="jcs-sha256-v2"),
    ):
        assert await code_of(running, changed) == (NonRetryable, "digest_conflict")


@pytest.mark.req("REF-11")
async def test_registry_is_not_read_for_every_call(running: Consumer) -> None:
    """Calls that name unknown versions make the consumer read its registry once in a while, not every time."""
    assert await code_of(running) == (Retryable, "dependency_unavailable")
    register(running, DEFINITION)
    assert await code_of(running) == (Retryable, "dependency_unavailable")


@pytest.mark.req("REF-11", "SET-39")
async def test_member_must_exist_and_be_ours(running: Consumer) -> None:
    """No such line, or a line that names another consumer, is an identity conflict."""
    others = builders.canonical(
        builders.definition_document(
            "8",
            [
                builders.member("order.placed@1", NAME, consumerName="another_consumer"),
                builders.member("order.paid@1", NAME, consumerName=NAME),
            ],
        )
    )
    register(running, others)
    version = DefinitionQuad("8", "1", "jcs-sha256-v1", builders.digest(others).hex())
    assert await code_of(running, version) == (NonRetryable, "identity_conflict")
    (absent,) = await running.receiving.receive(request_of([claim("order.lost@1", definition=version)]))
    assert isinstance(absent, NonRetryable)
    assert absent.code is ErrorCode.IDENTITY_CONFLICT


@pytest.mark.req("REF-11")
async def test_request_for_somebody_else_is_refused_whole(running: Consumer) -> None:
    """A request that names another destination or consumer than the inbox's own is an identity conflict."""
    request = request_of([claim(ORDERED), claim(ORDERED)])
    for changed in (replace(request, destination="search"), replace(request, consumer_name="search")):
        assert await running.receiving.receive(changed) == [NonRetryable(ErrorCode.IDENTITY_CONFLICT)] * 2


@pytest.mark.req("REF-11", "DLV-05")
async def test_delivery_and_envelope_must_be_one_event(running: Consumer) -> None:
    """Another id or pair than the envelope's is an identity conflict; an unknown algorithm is not supported."""
    register(running, DEFINITION)
    (delivery,) = request_of([claim(ORDERED)]).deliveries
    base = request_of([claim(ORDERED)])
    changes = [
        delivery._replace(event_id=builders.new_event_id()),
        delivery._replace(event_type="order.paid@1"),
        delivery._replace(schema_version="2"),
        delivery._replace(digest_algorithm="jcs-sha256-v2"),
    ]
    outcomes = await running.receiving.receive(replace(base, deliveries=tuple(changes)))
    assert [item.code.value for item in outcomes if isinstance(item, NonRetryable)] == [
        "identity_conflict",
        "identity_conflict",
        "identity_conflict",
        "version_unsupported",
    ]
    assert running.receipts() == []


@pytest.mark.req("DLV-11", "SET-20")
async def test_member_that_expects_another_receipt_waits(database: TestDatabase) -> None:
    """A member that expects a receipt this consumer does not write is retryable: the release is at fault."""
    candidate = builders.canonical(
        builders.definition_document(
            "9", [builders.member(ORDERED, NAME, consumerName=NAME, expectedReceiptType="SpecialReceipt")]
        )
    )
    inbox = Inbox(NAME)

    @inbox.consumer(Ordered)
    def ordered(_transaction: object, _event: Ordered) -> None:
        pytest.fail("a receipt nobody would believe")

    async with consumer(database, inbox=inbox, registered=False) as behind:
        register(behind, candidate)
        quad = DefinitionQuad("9", "1", "jcs-sha256-v1", builders.digest(candidate).hex())
        assert await code_of(behind, quad) == (Retryable, "dependency_unavailable")
