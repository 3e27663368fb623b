"""What a proof says of a projection, what a later look makes of it, and that no single fault passes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from seapost.database.installer import GuardLevel
from seapost.model.errors import InvalidSetting, WrongIsolation
from seapost.projections.completeness import Comparison, compare, prove
from seapost.projections.observations import Observation, accept, apply_observations
from seapost.projections.sense import Sense
from seapost.store import completeness as store
from seapost.telemetry import metrics
from seapost.telemetry.catalog import APPLY_SECONDS, NOT_APPLIED, REVISION_GAPS, SCHEMA_REJECTS
from tests.kit import accounts as kit
from tests.kit import builders
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.seeds import new_seed
from tests.kit.view_faults import FOUND_NOTHING, missed_faults

COMPLETE: Final = "complete_for_supported_scope"


@pytest.fixture
def database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database in which version 1 is read and version 2 follows."""
    database = database_server.create(GuardLevel.LEAN)
    kit.prepare_database(database, "1", "2")
    yield database
    database_server.drop(database)


@pytest.fixture
def kernel(database: TestDatabase) -> Iterator[Kernel]:
    """Give an onlooker with all rights."""
    with database.connect(autocommit=True) as connection:
        yield Kernel(connection)


def built(database: TestDatabase, kernel: Kernel, events: int = 40) -> list[bytes]:
    """Movements that version 2 has folded."""
    envelopes = kit.movements(11, 6, events)
    kernel.append(*envelopes)
    assert kit.rebuild(database, kit.accounts("2")).is_complete
    return envelopes


def summary(comparison: Comparison) -> tuple[str, str, str, str | None, str | None]:
    """The five words of an answer."""
    return (
        comparison.verification_state,
        comparison.snapshot_currency,
        comparison.completeness,
        comparison.integrity,
        comparison.reason,
    )


UNVERIFIED: Final = ("unverified", "unknown", "unknown", None)


@pytest.mark.req("ORD-05", "ORD-10", "ORD-11", "ORD-12", "REF-53")
def test_a_complete_version_is_proved_and_stays_current_until_something_changes(
    database: TestDatabase, kernel: Kernel
) -> None:
    """The manifest holds every input; the answer is current exactly while all of them are the same."""
    _ = built(database, kernel)
    projection = kit.accounts("2")
    proof = prove(kernel.connection, projection)
    assert (proof.result, proof.document["integrity"]) == (COMPLETE, "passed")
    assert proof.document["sources"][0]["count"] == proof.document["receipts"]["count"] == 40
    assert proof.document["sources"][0]["setDigest"] == proof.document["receipts"]["setDigest"]
    assert proof.digest == kernel.value("select manifest_digest from seapost.completeness_snapshot")
    assert summary(compare(kernel.connection, projection)) == ("verified", "verified_current", COMPLETE, "passed", None)
    kernel.append(kit.moved("new", 1))
    assert summary(compare(kernel.connection, projection)) == ("verified", "stale", "unknown", "passed", None)
    assert kit.rebuild(database, projection).applied == 1
    assert summary(compare(kernel.connection, projection)) == ("verified", "stale", "unknown", "passed", None)
    assert prove(kernel.connection, projection).is_complete
    assert compare(kernel.connection, projection).snapshot_currency == "verified_current"


@pytest.mark.req("ORD-13", "NEG-35")
def test_a_certain_gap_is_said_and_stale_never_says_complete(database: TestDatabase, kernel: Kernel) -> None:
    """An awaited revision is a certain gap, in a proof and in a later look."""
    _ = built(database, kernel)
    projection = kit.accounts("2")
    assert prove(kernel.connection, projection).is_complete
    kernel.append(kit.moved("gap", 2))
    _ = kit.rebuild(database, projection)
    assert summary(compare(kernel.connection, projection)) == (
        "verified",
        "stale",
        "partial_source_gap",
        "passed",
        None,
    )
    proof = prove(kernel.connection, projection)
    assert (proof.result, proof.document["openGaps"], proof.document["eventReceiptAntiJoin"]) == (
        "partial_source_gap",
        1,
        1,
    )
    assert proof.document["integrity"] == "failed"
    assert compare(kernel.connection, projection).snapshot_currency == "verified_current"


@pytest.mark.req("MET-04")
def test_the_metrics_of_a_projection_say_what_it_lacks(database: TestDatabase, kernel: Kernel) -> None:
    """Time to apply, events without receipt, open gaps and refused schemas: each has a line for its consumer."""
    foreign = kit.moved("harbour", 1, producer="harbour")
    odd = kit.delivery(builders.envelope(kit.MOVED, payload={"amount": "much"}), "2")
    _ = asyncio.run(kit.deliver(database, kit.accounts("2", many=False), kit.delivery(foreign, "2"), odd))
    kernel.append(kit.moved("behind", 2))
    _ = kit.rebuild(database, kit.accounts("2"))
    _ = asyncio.run(kit.deliver(database, kit.accounts("2"), kit.delivery(kit.moved("ahead", 2), "2")))
    proof = prove(kernel.connection, kit.accounts("2"))
    assert proof.document["eventReceiptAntiJoin"] == 1
    lines = metrics.exposition().decode().splitlines()
    mine = {line.partition("{")[0]: line for line in lines if f'consumer="{kit.CONSUMER}"' in line}
    assert mine[NOT_APPLIED.name].endswith(" 1.0")
    assert mine[REVISION_GAPS.name].endswith(" 2.0")
    assert {f"{APPLY_SECONDS.name}_count", SCHEMA_REJECTS.name} <= set(mine)


@pytest.mark.req("ORD-14", "NEG-35")
def test_without_a_comparable_proof_nothing_is_verified(database: TestDatabase, kernel: Kernel) -> None:
    """No proof, another semantic check, a check that cannot be carried out: each has its reason."""
    _ = built(database, kernel)

    def passes(connection: psycopg.Connection[Any]) -> Sense:
        [(total,)] = connection.execute("select count(*) from public.balance_2").fetchall()
        return Sense(total >= 0, sha256(str(total).encode()).hexdigest())

    def breaks(connection: psycopg.Connection[Any]) -> Sense:
        connection.execute("select 1 / 0")
        raise AssertionError

    plain, sensible = kit.accounts("2"), kit.accounts("2", semantic_check=passes)
    assert summary(compare(kernel.connection, plain)) == (*UNVERIFIED, "no_completed_snapshot")
    assert prove(kernel.connection, plain).is_complete
    assert summary(compare(kernel.connection, sensible)) == (*UNVERIFIED, "definition_not_comparable")
    broken = kit.accounts("2", semantic_check=breaks)
    assert summary(compare(kernel.connection, broken)) == (*UNVERIFIED, "guard_unavailable")
    with pytest.raises(InvalidSetting, match="cannot be carried out"):
        _ = prove(kernel.connection, broken)
    assert prove(kernel.connection, sensible).is_complete
    assert summary(compare(kernel.connection, sensible)) == ("verified", "verified_current", COMPLETE, "passed", None)


@pytest.mark.req("ORD-05")
def test_a_view_that_makes_no_sense_is_not_complete(database: TestDatabase, kernel: Kernel) -> None:
    """The semantic check counts as much as every count."""
    _ = built(database, kernel)

    def fails(_: psycopg.Connection[Any]) -> Sense:
        return Sense(passed=False, digest="0" * 64)

    proof = prove(kernel.connection, kit.accounts("2", semantic_check=fails))
    assert (proof.result, proof.document["integrity"], proof.document["semanticCheck"]["state"]) == (
        "unknown",
        "failed",
        "failed",
    )


@pytest.mark.req("ORD-05")
@pytest.mark.parametrize(
    ("trouble", "field", "result"),
    [
        ("unfinished", "unfinishedMandatoryDeliveries", "unknown"),
        ("quarantine", "affectingQuarantine", "partial_source_gap"),
        ("unsupported", "unsupportedSchema", "partial_source_gap"),
        ("observation", "observationReceiptAntiJoin", "unknown"),
    ],
)
def test_every_input_can_spoil_a_proof(
    database: TestDatabase, kernel: Kernel, trouble: str, field: str, result: str
) -> None:
    """Each of the inputs of ORD-05, alone, keeps the version from being complete."""
    _ = built(database, kernel)
    match trouble:
        case "unfinished":
            kernel.run("delete from seapost.delivery_ready")
            event = kit.moved("late", 1)
            kernel.activate("2", kit.definition("2"))
            kernel.append(event)
        case "quarantine":
            event = kit.moved("bad", 1)
            kernel.append(event)
            kernel.run("delete from seapost.delivery_ready where event_id <> %s", kit.event_ids([event])[0])
            _ = kernel.quarantine(kernel.claim_one(kit.DESTINATION))
        case "unsupported":
            kernel.register(other_definition())
            kernel.activate("9", other_definition())
            kernel.append(
                builders.envelope("account.closed@1", aggregate={"kind": "account", "id": "x", "revision": 1})
            )
        case _:
            _ = accept(kernel.connection, Observation(uuid4(), kit.NAME, b"{}"))
    proof = prove(kernel.connection, kit.accounts("2"))
    assert (proof.document[field], proof.result) == (1, result)


def other_definition() -> bytes:
    """A definition that sends a further event to the projection, which version 2 does not fold."""
    target = {"state": "required", "projectionName": kit.NAME, "projectionVersion": "2"}
    lines = [
        builders.member(
            event_type,
            kit.DESTINATION,
            consumerName=kit.CONSUMER,
            expectedReceiptType="ProjectionAppliedReceipt",
            projectionTarget=target,
        )
        for event_type in (kit.MOVED, "account.closed@1")
    ]
    return builders.canonical(builders.definition_document("9", lines))


@pytest.mark.req("ORD-05", "ORD-11")
def test_a_proof_holds_one_snapshot(database: TestDatabase, kernel: Kernel) -> None:
    """What commits while it is made is not in it, and makes it stale at once; outside a snapshot there is no proof."""
    _ = built(database, kernel)

    def meanwhile(_: psycopg.Connection[Any]) -> Sense:
        kernel.append(kit.moved(f"meanwhile-{uuid4()}", 1))
        return Sense(passed=True, digest="0" * 64)

    projection = kit.accounts("2", semantic_check=meanwhile)
    with database.connect(autocommit=True) as connection:
        connection.execute("select 1")
        proof = prove(connection, projection)
        assert (
            proof.document["sources"][0]["count"] == 41
        )  # the check runs first, and takes the snapshot after its append
        assert compare(connection, projection).snapshot_currency == "stale"
        with pytest.raises(WrongIsolation):
            _ = store.prove(connection, target=projection.target, semantic=FOUND_NOTHING, rehash=False)
        with connection.transaction(), pytest.raises(InvalidSetting, match="inside a transaction"):
            _ = prove(connection, projection)


@pytest.mark.req("SEC-19", "NEG-35")
def test_only_the_verifier_writes_a_proof(database: TestDatabase, kernel: Kernel) -> None:
    """Every other runtime role is refused; those who may look may compare."""
    _ = built(database, kernel)
    for role in ("producer", "dispatcher", "consumer", "operator", "auditor"):
        with database.connect(autocommit=True) as connection:
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(f"seapost_{role}")))
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                _ = prove(connection, kit.accounts("2"))
            if role in {"operator", "auditor"}:
                assert compare(connection, kit.accounts("2")).reason == "no_completed_snapshot"
    with database.connect(autocommit=True) as connection:
        connection.execute("set role seapost_verifier")
        assert prove(connection, kit.accounts("2")).is_complete
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("delete from seapost.completeness_snapshot")


@pytest.mark.req("REF-52", "ORD-05")
def test_observations_are_the_second_source(database: TestDatabase, kernel: Kernel) -> None:
    """They are accepted once, applied once to each version with a receipt, and count in its proof."""
    _ = built(database, kernel)
    projection = kit.accounts("2")
    one = Observation(uuid4(), kit.NAME, b'{"seen":1}')
    assert [accept(kernel.connection, one) for _ in range(2)] == [True, False]
    seen: list[bytes] = []
    with database.connect(autocommit=True) as connection:
        connection.execute("set role seapost_consumer")

        def apply(_: psycopg.Connection[Any], observation: Observation) -> None:
            seen.append(observation.envelope)

        assert [apply_observations(connection, projection, apply) for _ in range(2)] == [1, 0]
    assert seen == [b'{"seen":1}']
    proof = prove(kernel.connection, projection)
    assert (proof.result, proof.document["sources"][1]["count"]) == (COMPLETE, 1)


@pytest.mark.req("ORD-05")
def test_no_single_fault_passes_a_proof(database: TestDatabase, kernel: Kernel) -> None:
    """Rows dropped, doubled or altered behind everybody's back: every one keeps the proof from saying complete."""
    foreign = [kit.moved("harbour", revision, producer="harbour") for revision in (1, 2, 3)]
    claims = [kit.delivery(text, "2") for text in foreign]
    _ = built(database, kernel, 60)
    _ = asyncio.run(kit.deliver(database, kit.accounts("2"), *claims))
    assert prove(kernel.connection, kit.accounts("2"), rehash=True).is_complete
    seed = new_seed()
    missed = missed_faults(kernel.connection, random.Random(seed), rounds=8)
    assert missed == [], f"seed {seed}"
    assert prove(kernel.connection, kit.accounts("2"), rehash=True).is_complete
