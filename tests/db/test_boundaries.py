"""What no single function says: databases that share nothing, one golden everywhere, and the end of a delivery."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib.resources import files
from uuid import UUID

import pytest

from seapost.database.installer import GuardLevel
from tests.kit import builders
from tests.kit.builders import BILLING, SEARCH, SHIPPED
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel, opened

MOMENT = timedelta(milliseconds=100)


@pytest.mark.req("STO-03", "GEN-11", "STO-04")
def test_fact_databases_on_one_server_share_nothing(database_server: DatabaseServer) -> None:
    """Events, leases, publications and declarations of sleep of one database do not exist for its neighbour."""
    left, right = database_server.create(GuardLevel.LEAN), database_server.create(GuardLevel.STRICT)
    with opened(left) as one, opened(right) as other:
        one.append_new()
        assert one.value("select seapost.dispatcher_sleep_v1(%s)", BILLING)
        assert other.value("select seapost.dispatcher_sleep_v1(%s)", BILLING)  # the same name, another lock
        held = one.claim_one()

        assert other.claim() == []
        assert other.count("outbox_events") == 0
        other.append_new()
        stranger = other.claim_one()
        assert other.acknowledge(held) == [(held.fence.event_id, held.fence.attempt_id, "stale")]
        assert one.acknowledge(held) == []
        assert other.published_at(stranger.fence.event_id) is None
        assert other.acknowledge(stranger) == []
    for database in (left, right):
        database_server.drop(database)


@pytest.mark.req("STO-04")
def test_every_fact_database_has_one_structure(database_server: DatabaseServer) -> None:
    """The logical views have the same columns in the same order at both guard levels."""
    shapes: list[list[tuple[object, ...]]] = []
    for level in GuardLevel:
        database = database_server.create(level)
        rows = database.connect().execute(
            "select table_name, column_name, data_type from information_schema.columns"
            " where table_schema = 'seapost' order by table_name, ordinal_position"
        )
        shapes.append(rows.fetchall())
        database_server.drop(database)
    assert shapes[0] == shapes[1]
    assert shapes[0]


@pytest.mark.req("GEN-10", "TST-35", "SET-15")
@pytest.mark.parametrize("case", ["one-member", "several-with-projection"])
def test_the_database_computes_the_published_digest(database: TestDatabase, case: str) -> None:
    """A golden's bytes are accepted as canonical by SQL too, and get the digest that the golden publishes."""
    path = files("seapost.contracts") / "goldens" / "DeliverySetDefinition@1" / f"{case}.json"
    golden = json.loads(path.read_text(encoding="utf-8"))
    candidate = bytes.fromhex(golden["canonicalBytesHex"])

    kernel = Kernel(database.connect(autocommit=True))

    definition_id = kernel.register(candidate)

    stored = kernel.row(
        "select delivery_set_definition_digest, candidate from seapost.delivery_set_versions where definition_id = %s",
        definition_id,
    )
    assert stored == (golden["digest"], candidate)
    assert json.loads(golden["raw"])["deliverySetDefinitionDigest"] == golden["digest"]


@pytest.mark.req("AMB-12", "NEG-10", "PUB-01")
def test_a_quarantined_delivery_leaves_its_event_unpublished_and_in_sight(kernel: Kernel) -> None:
    """The other destination goes on, published_at stays empty for ever, and the status view shows the quarantine."""
    [event_id] = kernel.append_new(SHIPPED)
    kernel.quarantine(kernel.claim_one(BILLING))
    kernel.acknowledge(kernel.claim_one(SEARCH))

    assert kernel.published_at(event_id) is None
    assert kernel.recover() == {}
    assert kernel.claim(BILLING) == []
    assert kernel.row(
        "select quarantined, quarantined_unacknowledged, pending from seapost.destination_status"
        " where destination = %s",
        BILLING,
    ) == (1, 1, 0)


@pytest.mark.req("REF-06", "STO-10", "DLV-03")
def test_every_outcome_has_its_disposition(lean_kernel: Kernel) -> None:
    """The four outcomes and no other can finish an attempt, each with the disposition that follows from it."""
    kernel = lean_kernel
    kernel.append_new(count=1)
    kernel.retry(kernel.claim_one())
    expiring = kernel.claim_one(lease=MOMENT)
    kernel.run("update seapost.delivery_lease set expires_at = '-infinity'")
    assert kernel.recover() == {BILLING: 1}
    kernel.acknowledge(kernel.claim_one())
    kernel.append_new(count=1)
    kernel.quarantine(kernel.claim_one())

    found = kernel.rows(
        "select distinct outcome, retry_disposition from seapost.outbox_delivery_attempt_finishes order by outcome"
    )
    assert found == [
        ("acknowledged", "none"),
        ("lease_expired_unknown", "reclaimable"),
        ("non_retryable", "quarantined"),
        ("retryable", "scheduled"),
    ]
    assert kernel.acknowledge(expiring) == [(expiring.fence.event_id, expiring.fence.attempt_id, "stale")]


@pytest.mark.req("RCP-14", "RCP-39", "RCP-41")
def test_one_receipt_for_one_consumer_and_event_for_life(lean_kernel: Kernel) -> None:
    """A second receipt for the same consumer and event cannot be stored; another consumer's can."""
    kernel = lean_kernel
    event_id = builders.new_event_id()
    first = _receive(kernel, "billing", event_id, b"one")
    assert first == []
    assert [row[1] for row in _receive(kernel, "billing", event_id, b"one")] == ["duplicate"]
    assert [row[1] for row in _receive(kernel, "billing", event_id, b"two")] == ["conflict"]
    assert _receive(kernel, "search", event_id, b"one") == []
    assert kernel.count("inbox_receipts") == 2


def _receive(kernel: Kernel, consumer: str, event_id: UUID, content: bytes) -> list[tuple[object, ...]]:
    return kernel.rows(
        "select * from seapost.inbox_receive_v1(%s, %s, %s, %s, %s)",
        consumer,
        [event_id],
        [builders.digest(content)],
        ["ref"],
        [content],
    )
