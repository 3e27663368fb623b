"""What metering answers about settlement inputs and receipts, with real tokens, on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from oceanway.contracts.errors import NotFound, OwnerConflict
from oceanway.contracts.reads_metering import (
    READ_METERING_INPUT_PROCESSOR_CONSUMER_RECEIPT,
    READ_SETTLEMENT_INPUT_FOR_BILLING,
    VALIDATE_FOR_CATCH_UP_FENCE,
    VALIDATE_FOR_TRANSITION,
    MeteringReceiptQuestion,
    SettlementInputQuestion,
    SettlementInputValidation,
)
from oceanway.metering.conflicts import declare_settlement_conflict, repair
from oceanway.metering.documents import ATTEMPT, QUAD, Document, part, quad
from oceanway.metering.reads import register
from oceanway.reads.client import LocalReader
from seapost.database.pool import open_sync_pool
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_consumer import ROLE
from tests.kit.oceanway.metering_facts import USAGE, Attempt
from tests.kit.oceanway.reading import local_reader, new_serving

DIMENSION = (*ATTEMPT, "chargeDimensionKey", "settlementDimensionId")
QUINT = (*(f"settlementInputSnapshot{name}" for name in QUAD), "settlementInputStateVersion")
FIELDS = (*DIMENSION, *QUINT)


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        bench.admin.execute(f"grant oceanway_metering_reader to {ROLE}")  # the process that serves has both
        yield bench


@pytest.fixture(scope="module")
def catch_up(metering: Metering) -> Iterator[LocalReader]:
    """Give billing's catch-up worker as a reader of metering."""
    with open_sync_pool(metering.database.dsn, part="reads", role=ROLE) as pool:
        serving = new_serving("metering")
        register(serving, pool)
        yield local_reader(serving, workload="work.catch-up")


@pytest.fixture(scope="module")
def dispatcher(metering: Metering) -> Iterator[LocalReader]:
    """Give a dispatcher as a reader of metering."""
    with open_sync_pool(metering.database.dsn, part="reads", role=ROLE) as pool:
        serving = new_serving("metering")
        register(serving, pool)
        yield local_reader(serving, workload="dispatch.execution")


def settled(metering: Metering) -> tuple[Attempt, Document, Document]:
    """An attempt with two snapshots of its dimension, the older first."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "available", "1"))
    metering.work()
    metering.accept(attempt.report(USAGE, "tokens", "available", "2"))
    metering.work()
    old, new = metering.documents("settlement_input_snapshot", attempt)
    return attempt, old, new


def ask(reader: LocalReader, *snapshots: Document, **changes: Any) -> list[Any]:
    """Read settlement inputs; the answers by wire names."""
    questions = [
        SettlementInputQuestion.decode({**part(one, FIELDS), "operationId": "operation", **changes})
        for one in snapshots
    ]
    return [one.to_json()["answer"] for one in reader.call(READ_SETTLEMENT_INPUT_FOR_BILLING, questions)]


def validate(
    reader: LocalReader,
    snapshot: Document,
    operation: str = "operation",
    read: Any = VALIDATE_FOR_CATCH_UP_FENCE,  # noqa: ANN401 - either purpose
) -> Any:  # noqa: ANN401 - wire values
    """Ask whether a settlement input is current."""
    question = SettlementInputValidation.decode({**part(snapshot, FIELDS), "validationOperationId": operation})
    [answer] = reader.call(read, [question])
    return answer.to_json()["answer"]


@pytest.mark.req("REF-32", "AMB-30")
def test_any_snapshot_is_found_by_its_complete_quint(metering: Metering, catch_up: LocalReader) -> None:
    """The current one and an older one, in the order asked, byte for byte as stored."""
    _, old, new = settled(metering)
    assert [one["snapshot"] for one in ask(catch_up, new, old)] == [new, old]
    for changes in (
        {"settlementInputSnapshotDigest": "f" * 64},
        {"settlementInputSnapshotRef": "another"},
        {"settlementInputStateVersion": 7},
        {"billingAccountId": "another"},
    ):
        assert ask(catch_up, new, **changes) == [{"result": "not_found"}]


@pytest.mark.req("REF-49", "AMB-30", "REF-48")
def test_a_conflict_is_answered_until_its_repair(metering: Metering, catch_up: LocalReader) -> None:
    """Reads give the quad of the fact, validations the fact itself; nothing else changes."""
    _, old, new = settled(metering)
    dimension = new["settlementDimensionId"]
    with metering.database.connect("oceanway_metering_service", autocommit=True) as connection:
        fact = declare_settlement_conflict(connection, dimension, candidate_digest="a" * 64)
        assert declare_settlement_conflict(connection, dimension, candidate_digest="a" * 64) != {}
        with pytest.raises(OwnerConflict):
            declare_settlement_conflict(connection, dimension, candidate_digest="b" * 64)
        for snapshot in (old, new):
            [answer] = ask(catch_up, snapshot)
            assert answer == {"result": "conflicting", **quad("settlementInputConflictFact", fact)}
            assert validate(catch_up, snapshot) == {"result": "conflicting", "conflictFact": fact}
        assert repair(connection, dimension)
        assert not repair(connection, dimension)
        with pytest.raises(OwnerConflict):
            declare_settlement_conflict(connection, dimension, candidate_digest="a" * 64)
        with pytest.raises(NotFound):
            declare_settlement_conflict(connection, "no dimension", candidate_digest="a" * 64)
    assert [one["result"] for one in ask(catch_up, old, new)] == ["found", "found"]
    assert validate(catch_up, new)["result"] == "current"


@pytest.mark.req("REF-48", "REF-30", "TST-19")
def test_only_the_current_input_gets_a_receipt_and_the_repetition_gets_the_same(
    metering: Metering, catch_up: LocalReader
) -> None:
    """One receipt for each purpose and operation; an older input is superseded by the current one."""
    attempt, old, new = settled(metering)
    assert validate(catch_up, old) == {"result": "superseded", **part(new, QUINT)}
    first = validate(catch_up, new, "operation-1")
    assert first["receipt"]["validatedQuint"]["digest"] == new["settlementInputSnapshotDigest"]
    assert first["receipt"]["subject"] == {"kind": "settlement_dimension", **part(new, DIMENSION)}
    assert validate(catch_up, new, "operation-1") == first
    other = validate(catch_up, new, "operation-1", VALIDATE_FOR_TRANSITION)
    assert other["receipt"]["purpose"] == "post_finalization_transition"
    assert other["receipt"]["currentValidationReceiptRef"] != first["receipt"]["currentValidationReceiptRef"]
    metering.accept(attempt.report(USAGE, "tokens", "available", "3"))
    metering.work()
    assert validate(catch_up, new, "operation-1")["result"] == "superseded"
    newest = metering.current(attempt)[0]
    assert validate(catch_up, newest, "operation-1") == {"result": "not_found"}  # the operation confirmed another input
    for changes in (
        {"settlementInputStateVersion": 9},
        {"settlementInputSnapshotDigest": "f" * 64},
        {"billingAccountId": "another"},
    ):
        assert validate(catch_up, {**newest, **changes}) == {"result": "not_found"}


@pytest.mark.req("RCP-33", "RCP-34", "NEG-11")
def test_a_receipt_is_found_only_by_everything_that_is_known_of_it(metering: Metering, dispatcher: LocalReader) -> None:
    """Quad, event, digest and source; whatever differs is a conflict, and an unknown event is not found."""
    told = metering.new_attempt().end()
    receipt = metering.receipt(told)
    asked = {
        **quad("meteringInputProcessorConsumerReceipt", receipt),
        **part(receipt, ("eventId", "eventEnvelopeDigestAlgorithmVersion", "eventEnvelopeSha256", "source")),
    }

    def answer(**changes: Any) -> Any:  # noqa: ANN401 - wire values
        question = MeteringReceiptQuestion.decode({**asked, **changes})
        [one] = dispatcher.call(READ_METERING_INPUT_PROCESSOR_CONSUMER_RECEIPT, [question])
        return one.to_json()["answer"]

    assert answer() == {"result": "found", "receipt": receipt}
    for changes in (
        {"meteringInputProcessorConsumerReceiptDigest": "f" * 64},
        {"meteringInputProcessorConsumerReceiptRef": "another"},
        {"eventEnvelopeSha256": "f" * 64},
        {"source": {**receipt["source"], "runStepId": "another"}},
    ):
        assert answer(**changes) == {"result": "conflicting"}
    assert answer(eventId="01a2303b-0000-7000-8000-000000000000") == {"result": "not_found"}
    metering.work()


def test_a_declared_conflict_only_gains_its_repair(metering: Metering) -> None:
    """The database lets nobody rewrite it."""
    _, _, new = settled(metering)
    with metering.database.connect("oceanway_metering_service", autocommit=True) as connection:
        declare_settlement_conflict(connection, new["settlementDimensionId"], candidate_digest="a" * 64)
        for statement in (
            "update metering.settlement_input_conflict set digest = 'x', repaired_at = now()",
            "update metering.settlement_input_conflict set declared_at = now()",
            "delete from metering.settlement_input_conflict",
        ):
            with pytest.raises(psycopg.errors.RestrictViolation):
                metering.admin.execute(statement)
        assert repair(connection, new["settlementDimensionId"])
