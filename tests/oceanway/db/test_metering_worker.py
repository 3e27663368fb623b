"""What the workers of metering make of the owners' answers, on a real database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oceanway.metering.documents import Document
from oceanway.metering.documents import read as read_document
from oceanway.metering.eligibility import VALIDATION
from oceanway.metering.provider_cost import AVAILABILITY, ROUTE
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, USAGE, Attempt, conflict_quad

BOOTSTRAP = "readGatewaySourceEvent"


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        yield bench


@pytest.mark.req("MTR-03", "REF-29", "REF-32", "APP-24", "APP-25", "RCP-25", "REF-33")
def test_usage_becomes_decision_meter_event_snapshot_and_event(metering: Metering) -> None:
    """Two charges of one usage; each has its dimension, its snapshot of version 1 and its announcement."""
    attempt = metering.usable("12.5", a="tokens", b="tokens")
    metering.work()
    [decision] = metering.documents("eligibility_decision", attempt)
    assert decision["decision"] == {"state": "billable"}
    meters = metering.documents("meter_event", attempt)
    assert [(one["chargeDimensionKey"], one["quantity"], one["unit"]) for one in meters] == [
        ("a", "12.5", "token"),
        ("b", "12.5", "token"),
    ]
    snapshots = metering.current(attempt)
    assert [(one["settlementInputStateVersion"], one["predecessor"]) for one in snapshots] == [
        (1, {"state": "none"})
    ] * 2
    for snapshot, meter in zip(snapshots, meters, strict=True):
        [event] = metering.events(snapshot["settlementDimensionId"])
        payload = event["payload"]
        assert payload["settlementInputSnapshotDigest"] == snapshot["settlementInputSnapshotDigest"]
        assert payload["settlementEconomicIdentity"] == snapshot["settlementEconomicIdentity"]
        assert event["aggregate"] == {
            "kind": "settlement_dimension_input",
            "id": snapshot["settlementDimensionId"],
            "revision": 1,
        }
        assert event["correlation"]["correlationId"] == attempt.manifest["runId"]
        assert snapshot["meterEvents"][0]["meterEventDigest"] == meter["meterEventDigest"]
    state = metering.lane(attempt)["coordination_state"]
    listed = [item["digest"] for item in state["settlementInputSnapshots"]]
    assert listed == [one["settlementInputSnapshotDigest"] for one in snapshots]
    metering.check()


@pytest.mark.req("REF-32", "TST-19", "APP-25")
def test_only_dimensions_that_changed_get_a_snapshot_and_each_names_its_direct_predecessor(metering: Metering) -> None:
    """Three revisions of one usage, of which the second changes nothing; the other usage stays."""
    attempt = metering.new_attempt(charges={"a": "one", "b": "two"})
    metering.accept(
        attempt.end(), attempt.report(USAGE, "one", "available", "1"), attempt.report(USAGE, "two", "available", "2")
    )
    metering.work()
    for value in ("1", "5"):
        metering.accept(attempt.report(USAGE, "one", "available", value))
        metering.work()
    history = metering.documents("settlement_input_snapshot", attempt)
    assert [(one["chargeDimensionKey"], one["settlementInputStateVersion"], one["quantity"]) for one in history] == [
        ("a", 1, "1"),
        ("a", 2, "5"),
        ("b", 1, "2"),
    ]
    assert history[1]["predecessor"]["settlementInputSnapshotDigest"] == history[0]["settlementInputSnapshotDigest"]
    assert len(metering.documents("eligibility_decision", attempt)) == 3
    assert metering.lane(attempt)["coordination_state"]["settlementInputSnapshotCount"] == 2
    metering.check()


@pytest.mark.req("AMB-49", "REF-32", "RCP-32")
@pytest.mark.parametrize(
    ("result", "state", "reason"),
    [
        ("succeeded", "not_reported", "usage_not_reported"),
        ("succeeded", "unavailable", "usage_unavailable"),
        ("failed", None, "attempt_failed"),
        ("not_dispatched", None, "not_dispatched"),
    ],
)
def test_what_is_not_billable_has_snapshots_of_quantity_zero(
    metering: Metering, result: str, state: str | None, reason: str
) -> None:
    """Billing never waits for nothing; usage that comes after all makes the next version."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(result))
    if state is not None:
        metering.accept(attempt.report(USAGE, "tokens", state))
    metering.work()
    [decision] = metering.documents("eligibility_decision", attempt)
    assert decision["decision"] == {"state": "not_billable", "reasonCode": reason}
    assert [one["quantity"] for one in metering.current(attempt)] == ["0"]
    assert metering.documents("meter_event", attempt) == []
    metering.accept(attempt.report(USAGE, "tokens", "available", "3"))
    metering.work()
    [current] = metering.current(attempt)
    expected = ("3", 2) if state is not None else ("0", 1)
    assert (current["quantity"], current["settlementInputStateVersion"]) == expected
    metering.check()


@pytest.mark.req("MTR-03", "MTR-05", "AMB-08", "RCP-24", "MTR-10")
def test_waiting_ends_the_work_and_the_counterpart_makes_the_next(metering: Metering) -> None:
    """Usage first, then eligibility, then the usage is pending, then it comes."""
    attempt = metering.new_attempt()
    steps = [
        (lambda: attempt.report(USAGE, "tokens", "pending"), "waiting_for_execution"),
        (attempt.end, "waiting_for_gateway_usage"),
        (lambda: attempt.report(USAGE, "tokens", "available", "4"), "applied"),
    ]
    for generation, (tell, state) in enumerate(steps, start=1):
        metering.accept(tell())
        assert metering.lane(attempt)["state"] == "pending"
        metering.work()
        lane = metering.lane(attempt)
        assert (lane["state"], lane["latest_work_generation"], lane["active_work_ref"]) == (state, generation, None)
    finishes = metering.documents("work_finish", attempt)
    assert [one["outcome"].get("waitingFor") for one in finishes] == ["execution_eligibility", "gateway_usage", None]
    metering.check()


CONFLICTS = [
    ("readExecutionEligibilityFact", "executionEligibilityConflictFact", "execution_eligibility_owner_conflict"),
    (BOOTSTRAP, "gatewayEvidenceConflictFact", "gateway_usage_owner_conflict"),
    (BOOTSTRAP, "gatewayBindingConflictFact", "gateway_binding_owner_conflict"),
    ("validateGatewayAvailabilityCurrent", "gatewayEvidenceConflictFact", "gateway_usage_owner_conflict"),
]


@pytest.mark.req("MTR-15", "MTR-18", "MTR-19", "MTR-20", "MTR-21", "MTR-38", "RCP-26", "AMB-31")
@pytest.mark.parametrize(("read", "fact", "kind"), CONFLICTS)
def test_an_owners_conflict_blocks_the_same_work_until_the_repair(
    metering: Metering, read: str, fact: str, kind: str
) -> None:
    """Work, operation and generation stay; each attempt has its record; after the repair the work is done."""
    attempt = metering.usable()
    metering.peers.conflicting[attempt.ref, read] = conflict_quad(fact)
    before = metering.lane(attempt)
    for _ in range(2):
        metering.work()
        lane = metering.lane(attempt)
        assert lane["state"] == "blocked_on_owner_conflict"
        assert [lane[name] for name in ("active_work_ref", "latest_work_generation", "lease_owner")] == [
            before["active_work_ref"],
            before["latest_work_generation"],
            None,
        ]
    records = metering.documents("work_blocked", attempt)
    assert [one["attemptNumber"] for one in records] == [1, 2]
    assert records[0]["blockingCause"] == {"kind": kind, **conflict_quad(fact)}
    metering.peers.conflicting.clear()
    metering.work()
    assert metering.lane(attempt)["state"] == "applied"
    [finish] = metering.documents("work_finish", attempt)
    assert (finish["attemptNumber"], finish["meteringInputWorkRef"]) == (3, before["active_work_ref"])
    metering.check()


@pytest.mark.req("AMB-21", "MTR-21")
def test_a_usage_that_is_itself_conflicting_blocks_and_a_later_one_resumes(metering: Metering) -> None:
    """The conflict fact of the body is the cause; the next event makes a new generation."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "conflicting"))
    metering.work()
    [record] = metering.documents("work_blocked", attempt)
    assert record["blockingCause"]["kind"] == "gateway_usage_owner_conflict"
    metering.accept(attempt.report(USAGE, "tokens", "available", "2"))
    metering.work()
    assert metering.lane(attempt)["state"] == "applied"
    states = [one["outcome"]["state"] for one in metering.documents("work_finish", attempt)]
    assert states == ["superseded", "applied"]
    metering.check()


def wrong_digest(attempt: Attempt, kind: str, dimension: str) -> Document:
    """The newest snapshot of a chain, with a content that its digest does not cover."""
    return {"availabilitySnapshot": {**attempt.chains[kind, dimension][-1], "executionAttemptId": "another"}}


@pytest.mark.req("MTR-16", "MTR-17", "MTR-23", "MTR-28", "MTR-36", "RCP-36", "RCP-28")
def test_what_metering_proves_itself_is_kept_as_evidence_with_its_stage(metering: Metering) -> None:
    """A wrong digest, an unknown schema, a foreign receipt: blocked, and done once the owner is right again."""
    usage, cost = metering.usable(), metering.costly()
    peers = metering.peers
    other = metering.costly()
    metering.work()
    receipts = "validateGatewayAvailabilityCurrent"
    row = metering.admin.execute(
        "select document from metering.validation_receipt where purpose = %s limit 1", (AVAILABILITY,)
    ).fetchone()
    assert row is not None
    foreign = read_document(row[0])
    usage, cost = metering.usable(), metering.costly()
    for read, changes_usage, changes_cost in (
        (BOOTSTRAP, wrong_digest(usage, USAGE, "tokens"), wrong_digest(cost, COST, "spend")),
        (
            BOOTSTRAP,
            {"evidence": {**next(iter(usage.evidence.values())), "gatewayEvidenceSchemaVersion": "9"}},
            {"evidence": {**next(iter(cost.evidence.values())), "gatewayEvidenceSchemaVersion": "9"}},
        ),
        (receipts, {"receipt": foreign}, {"receipt": foreign}),
    ):
        peers.changes = {(usage.ref, read): changes_usage, (cost.ref, read): changes_cost}
        metering.work()
        assert metering.lane(usage)["state"] == "blocked_on_owner_conflict"
        assert metering.lane(cost, "spend")["state"] == "blocked_on_processing_conflict"
    found = metering.documents("eligibility_conflict_evidence", usage)
    found += [one["cause"] for one in metering.documents("cost_conflict_evidence", cost)]
    stages = [(one["validationStage"], one["reasonCode"]) for one in found]
    assert sorted(stages) == sorted(
        [
            ("eligibility_basis", "digest_differs"),
            ("eligibility_basis", "schema_unknown"),
            ("availability_validation_receipt", "receipt_differs"),
            ("source_identity", "digest_differs"),
            ("source_schema", "schema_unknown"),
            ("availability_validation_receipt", "receipt_differs"),
        ]
    )
    peers.changes.clear()
    metering.work()
    assert (metering.lane(usage)["state"], metering.lane(cost, "spend")["state"]) == (
        "applied",
        "availability_processed",
    )
    assert metering.lane(other, "spend")["state"] == "availability_processed"
    metering.check()


@pytest.mark.req("MTR-16", "MTR-20")
def test_usage_in_another_unit_blocks_and_a_corrected_revision_is_applied(metering: Metering) -> None:
    """The stage is the meter event; nothing was derived from it."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "available", "2", unit="second"))
    metering.work()
    [evidence] = metering.documents("eligibility_conflict_evidence", attempt)
    assert (evidence["validationStage"], evidence["reasonCode"]) == ("meter_event", "unit_differs")
    metering.accept(attempt.report(USAGE, "tokens", "available", "2"))
    metering.work()
    assert metering.lane(attempt)["state"] == "applied"
    metering.check()


@pytest.mark.req("MTR-39", "NEG-17", "AMB-45", "REF-30")
@pytest.mark.parametrize("why", ["execution", "gateway", "not found", "superseded"])
def test_what_is_temporary_gives_the_lease_back_and_writes_nothing(metering: Metering, why: str) -> None:
    """No record, no evidence, no finish; the work is done once the owner answers."""
    attempt = metering.usable()
    metering.accept(attempt.report(COST, "spend", "available"))
    peers = metering.peers
    if why in {"execution", "gateway"}:
        peers.unreadable = {"execution", "gateway"}
    elif why == "not found":
        del peers.attempts[attempt.ref]
    newer = [attempt.report(USAGE, "tokens", "available", "9"), attempt.report(COST, "spend", "available", "9")]
    tokens = metering.admin.execute("select count(*) from metering.work_start").fetchone()
    metering.work()
    for dimension in (None, "spend"):
        lane = metering.lane(attempt, dimension)
        assert (lane["state"], lane["lease_owner"], lane["retry_count"]) == ("pending", None, 1)
    for table in ("work_blocked", "work_finish", "eligibility_decision", "cost_processing", "cost_conflict_evidence"):
        assert metering.documents(table, attempt) == [], table
    assert metering.admin.execute("select count(*) from metering.work_start").fetchone() != tokens
    peers.unreadable.clear()
    peers.attempts[attempt.ref] = attempt
    metering.accept(*newer)
    metering.work()
    assert [one["quantity"] for one in metering.current(attempt)] == ["9"]
    metering.check()


@pytest.mark.req(
    "SEC-09", "SEC-10", "SEC-11", "RCP-18", "RCP-19", "RCP-20", "RCP-21", "MTR-26", "MTR-27", "MTR-29", "NEG-18"
)
def test_questions_have_their_exact_purposes_and_the_bootstrap_carries_nothing_derived(metering: Metering) -> None:
    """Bodies are asked for the event, receipts for the operation; nobody asks for the construction of facts."""
    refs = {metering.usable().ref, metering.costly().ref}
    metering.work()
    mine = [one for one in metering.peers.asked if (one[2].get("subject") or one[2])["executionAttemptId"] in refs]
    assert {(name, purpose) for name, purpose, _ in mine} == {
        ("readAttemptExecutionManifest", "metering_execution_eligibility"),
        ("readAttemptExecutionManifest", "metering_gateway_availability"),
        ("readExecutionEligibilityFact", "metering_execution_eligibility"),
        (BOOTSTRAP, "metering_source_event_bootstrap"),
        ("validateGatewayAvailabilityCurrent", VALIDATION),
        ("validateGatewayRouteCurrent", ROUTE),
    }
    for name, _, question in mine:
        if name == BOOTSTRAP:
            assert not [field for field in question if "asis" in field or "alidation" in field or "andidate" in field]
            assert {
                "eventEnvelopeSha256",
                "aggregateRevision",
                "attemptRouteBindingDigest",
                "currentAvailabilityDigest",
            } <= set(question)


@pytest.mark.req("AMB-45", "MTR-20")
def test_fruitless_works_wait_twice_as_long_each_time_up_to_a_limit(metering: Metering) -> None:
    """The backoff of the database."""
    waits = metering.admin.execute(
        "select extract(epoch from metering.lane_backoff(n, '100 ms', '5 s'))::float from generate_series(0, 7) as n"
    ).fetchall()
    assert [wait for (wait,) in waits] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
