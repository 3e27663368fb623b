"""Cases of a finalization: how a fence enters one, what holds meanwhile, and how a controlled command leads out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.billing import store_finalization as store
from oceanway.billing.finalization.gate import ROUTES, CommandChain, open_gate
from oceanway.billing.finalization.worker import build_runner
from oceanway.billing.grants import sign_grant
from oceanway.billing.resolution.command import ResolutionCommand
from oceanway.contracts.errors import GateClosed, GrantConsumed, InvalidArgument, NotFound, OwnerConflict, Stale
from oceanway.contracts.events import FinalizationReconciliationResolutionAppliedEvent
from oceanway.contracts.facts.resolution import InvestigationEvidenceReference
from seapost.model.errors import ContractError, InvalidToken
from seapost.model.outcome import Acknowledged, NonRetryable
from tests.kit.database import TestDatabase
from tests.kit.oceanway.billing_finalization import Billing, running_billing
from tests.kit.oceanway.billing_finalization_commands import Chain, chain_for
from tests.kit.oceanway.billing_finalization_runs import Run
from tests.kit.oceanway.billing_finalization_runs import told as tell


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give one billing with an open gate; every test has runs of its own."""
    with running_billing(billing_database) as bench:
        bench.open_gate()
        yield bench
        bench.balanced()


@pytest.fixture(scope="module")
def case(billing: Billing) -> Run:
    """Give one run in a case to all tests that do not change it."""
    return billing.in_case()


@pytest.mark.req("CASE-01", "CASE-02", "CASE-04", "CASE-05", "FIN-06", "FIN-07", "AMB-23", "APP-06", "APP-12")
@pytest.mark.parametrize("owner", ["execution", "metering"])
def test_a_conflict_of_an_owner_becomes_a_requested_case(billing: Billing, owner: str) -> None:
    """The identity is reserved first; decision, Finish, fence and the self-contained event follow at once."""
    run = billing.admitted()
    billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
    run.in_conflict() if owner == "execution" else run.inputs_in_conflict()
    billing.work(gate=True)
    fence = billing.fence(run)
    assert (fence["state"], fence["reconciliation_generation"], fence["active_work_ref"]) == (
        "reconciliation_required",
        1,
        None,
    )
    assert billing.finishes(run)[-1] == "reconciliation_required"
    assert [kind for kind, _, _ in billing.ledger(run)] == ["reserve"]
    (event,) = billing.events(run)
    payload = event["payload"]
    assert billing.deliveries(event) == ["core_operations"]
    assert payload["reason"] == {"execution": "execution_conflict", "metering": "settlement_conflict"}[owner]
    assert payload["reconciliationGeneration"] == payload["expectedResolutionRevision"] == 1
    assert payload["triggeringBillingFinalizationWorkRef"]
    reserved = billing.peers.identities[run.fence, 1]
    assert payload["finalizationCaseIdentityReservationDigest"] == reserved["finalizationCaseIdentityReservationDigest"]
    assert event["correlation"]["causationId"] == fence["closure_watermark"]["closureEventId"]


@pytest.mark.req("CASE-03", "SEC-12", "NEG-29")
def test_the_identity_of_a_case_knows_no_work_and_no_operation_of_one(billing: Billing) -> None:
    """Nothing that is asked of operations, and so nothing its token binds, names the work that asks."""
    run = billing.in_case()
    (question,) = [
        question
        for name, question in billing.peers.asked
        if name == "reserveFinalizationReconciliationCaseIdentity" and question["candidate"]["runId"] == run.run_id
    ]
    work, operation = billing.admin.execute(
        "select billing_finalization_work_ref, billing_finalization_operation_id from billing.finalization_work"
        " where billing_finalization_fence_id = %s order by work_generation desc limit 1",
        (run.fence,),
    ).fetchone() or ("", "")
    text = json.dumps(question)
    assert work
    assert work not in text
    assert operation not in text
    assert "Work" not in text
    assert "FinalizationOperation" not in text


@pytest.mark.req("TST-24", "CASE-12", "AMB-54", "AMB-28")
def test_a_superseded_reservation_of_an_identity_is_reused_by_the_next_generation(billing: Billing) -> None:
    """While the first work reserves, a newer input arrives: the first loses, the second takes the identity."""
    run = billing.admitted()
    billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
    run.in_conflict()
    arriving = run.measure("attempt-0", "key-0", "5")
    billing.peers.meanwhile["reserveFinalizationReconciliationCaseIdentity"] = lambda: billing.accept(arriving)
    billing.alone(run)
    first = billing.once(gate=True)
    assert first.waiting["fence_moved_on"] == 1
    assert billing.state(run) == "pending"
    billing.work(gate=True)
    assert billing.state(run) == "reconciliation_required"
    assert len([key for key in billing.peers.identities if key[0] == run.fence]) == 1
    assert billing.finishes(run)[-2:] == ["superseded", "reconciliation_required"]
    digest = "finalizationCaseIdentityReservationDigest"
    assert billing.requested(run)["payload"][digest] == billing.peers.identities[run.fence, 1][digest]


@pytest.mark.req(
    "CASE-15", "CASE-16", "CASE-17", "FIN-09", "FIN-10", "FIN-12", "RCP-44", "RCP-45", "RCP-47", "NEG-20", "CASE-22"
)
def test_a_resolution_reopens_the_finalization_with_everything_that_arrived_meanwhile(billing: Billing) -> None:
    """Inputs that arrive during the case only move watermarks; the resolution's work absorbs them once."""
    run = billing.in_case()
    before = billing.fence(run)
    billing.accept(run.measure("attempt-0", "key-0", "8"))
    assert billing.fence(run) == before
    told = billing.resolved(run)
    event = json.loads(told.envelope)
    assert billing.deliveries(event) == ["billing_finalization_coordinator", "core_operations"]
    assert event["payload"]["action"] == "reevaluate_current_owner_state"
    assert event["aggregate"]["revision"] == 1
    assert "amount" not in told.envelope.decode().lower()
    run.repaired()
    (receipt,) = map(json.loads, billing.accept(told))
    assert receipt["outcome"]["state"] == "work_scheduled"
    assert receipt["source"]["reconciliationCaseRef"] == event["payload"]["reconciliationCaseRef"]
    billing.work(gate=True)
    assert billing.state(run) == "finalized"
    assert ("settle", "2") in [(kind, amount) for kind, _, amount in billing.ledger(run)]


@pytest.mark.req("CASE-23", "CASE-02")
def test_a_conflict_that_lasts_makes_the_next_case_generation(billing: Billing) -> None:
    """The new identity names its predecessor directly; the old resolution cannot be applied again."""
    run = billing.in_case()
    first = billing.requested(run)
    billing.accept(billing.resolved(run))
    billing.work(gate=True)
    second = billing.requested(run)["payload"]
    assert second["reconciliationGeneration"] == 2
    predecessor = billing.peers.identities[run.fence, 2]["predecessor"]
    assert predecessor["reconciliationCaseRef"] == first["payload"]["reconciliationCaseRef"]
    assert billing.fence(run)["reconciliation_generation"] == 2
    run.repaired()
    billing.accept(billing.resolved(run))
    billing.work(gate=True)
    assert billing.state(run) == "finalized"


@pytest.mark.req("FIN-11", "AMB-16", "RCP-46", "FIN-14")
def test_a_resolution_that_was_applied_without_a_receipt_is_already_superseded(billing: Billing) -> None:
    """Only the fence can show it: the receipt is taken away, and the event makes no second work."""
    run = billing.in_case()
    told = billing.resolved(run)
    billing.accept(told)
    fence = billing.fence(run)
    billing.admin.execute("set session_replication_role = replica")
    billing.admin.execute("delete from seapost.inbox_receipt where event_id = %s", (told.event_id,))
    billing.admin.execute("set session_replication_role = origin")
    (receipt,) = map(json.loads, billing.accept(told))
    assert receipt["outcome"] == {"state": "already_superseded", "finalizationFenceRevision": fence["fence_revision"]}
    assert billing.fence(run) == fence


@pytest.mark.req("RCP-40", "FIN-08", "RCP-43", "CASE-20", "TST-12")
def test_what_was_done_is_answered_with_the_first_result(billing: Billing) -> None:
    """Redelivered events get the bytes of their first receipts, a repeated command its first fact, at any time."""
    run = billing.in_case()
    command = chain_for(billing.requested(run)).command()
    fact = billing.resolve(command)
    told = billing.resolution_event(run)
    first = billing.accept(told)
    run.repaired()
    billing.work(gate=True)
    before = billing.digest()
    later = datetime.now(UTC) + timedelta(days=2)
    assert billing.resolve(command, now=later) == fact
    assert billing.accept(told) == first
    assert billing.digest() == before


def refused(billing: Billing, chain: Chain, error: type[Exception], **changes: Any) -> None:
    """The command with these changes of its grant is refused and changes nothing."""
    before = billing.digest()
    with pytest.raises(error):
        billing.resolve(chain.command(**changes))
    assert billing.digest() == before


@pytest.mark.req("SEC-14", "NEG-30", "REF-42", "CASE-19")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sub", "serve.billing"),
        ("actor_workforce_principal_id", "person-2"),
        ("request_digest", "b" * 64),
        ("candidate_digest", "b" * 64),
        ("decision_digest", "b" * 64),
        ("case_ref", "another"),
        ("generation", 2),
        ("investigation_evidence_references_digest", "b" * 64),
        ("exp", 2),
        ("iat", 4_000_000_000),
    ],
)
def test_a_grant_for_anything_else_is_refused(billing: Billing, case: Run, name: str, value: str | int) -> None:
    """Each claim is compared; a grant whose time is over or has not come allows nothing."""
    times = {"exp": {"iat": 1}, "iat": {"exp": 4_000_000_001}}.get(name, {})
    refused(billing, chain_for(billing.requested(case)), InvalidToken, **{name: value, **times})


@pytest.mark.req("SEC-14", "NEG-30", "SEC-13")
def test_a_grant_is_believed_only_with_the_signature_of_operations(billing: Billing, case: Run) -> None:
    """A token of anybody else, a broken one and one of another audience are refused, and never repeated."""
    chain = chain_for(billing.requested(case))
    forged = sign_grant(chain.grant(), Ed25519PrivateKey.generate())
    good = chain.command()
    for token in (forged, good.grant[:-4] + "AAAA", "x" * 9_000, "nonsense"):
        with pytest.raises(InvalidToken) as refusal:
            billing.resolve(ResolutionCommand(chain.request, chain.candidate, chain.decision, token))
        assert token not in str(refusal.value)
    assert good.grant not in repr(good)
    with pytest.raises(ContractError):
        chain.grant(aud="metering")


@pytest.mark.req("CASE-18", "CASE-19", "NEG-30", "CASE-22")
def test_a_chain_that_is_not_one_chain_is_refused(billing: Billing, case: Run) -> None:
    """Another candidate, another actor and a refused decision; references are never empty, unsorted or double."""
    requested = billing.requested(case)
    one, two = chain_for(requested), chain_for(requested, actor="person-2")
    refused(billing, Chain(one.request, two.candidate, two.decision), InvalidArgument)
    refused(billing, Chain(one.request, one.candidate, two.decision), InvalidArgument)
    same = chain_for(requested)
    refused(billing, Chain(one.request, same.candidate, same.decision), InvalidArgument)
    refused(billing, chain_for(requested, verdict="refused"), InvalidArgument)
    reference = one.candidate.investigation_evidence_references[0]
    other = InvestigationEvidenceReference(reference_type="incident", reference_schema_version="1", reference="a")
    document = one.candidate.to_json()
    for references in ([], [reference, reference], [reference, other]):
        broken: dict[str, Any] = {
            **document,
            "investigationEvidenceReferences": [item.to_json() for item in references],
        }
        with pytest.raises(ContractError):
            type(one.candidate).decode(broken)
    for name in ("amount", "ignoreConflict", "settlementInputSnapshotRef"):
        with pytest.raises(ContractError):
            type(one.candidate).decode({**document, name: "1"})


@pytest.mark.req("SEC-15", "NEG-30", "CASE-20", "CASE-15", "REF-41")
def test_a_grant_is_consumed_once_and_an_operation_is_applied_once(billing: Billing) -> None:
    """The identifier serves no second command; the same operation with another actor, chain or grant is a conflict."""
    run, other = billing.in_case(), billing.in_case()
    chain = chain_for(billing.requested(run))
    grant = chain.grant()
    billing.resolve(chain.signed(grant))
    foreign = chain_for(billing.requested(other))
    refused(billing, foreign, GrantConsumed, jti=grant.jti)
    refused(billing, chain, OwnerConflict)
    refused(billing, chain_for(billing.requested(run), actor="person-2"), OwnerConflict)
    assert billing.one("select count(*) from billing.grant_consumed where grant_jti = %s", grant.jti) == 1


@pytest.mark.req("CASE-16", "RCP-44", "FIN-09")
def test_a_case_that_billing_is_not_in_is_not_resolved(billing: Billing) -> None:
    """An unknown case, another identity of a known one, and a case that was left."""
    run = billing.in_case()
    requested = billing.requested(run)
    strange = {**requested, "payload": {**requested["payload"], "finalizationCaseIdentityReservationDigest": "c" * 64}}
    refused(billing, chain_for(strange), NotFound)
    billing.admin.execute(
        "update billing.finalization_fence set reconciliation_generation = 2 where billing_finalization_fence_id = %s",
        (run.fence,),
    )
    refused(billing, chain_for(requested), Stale)


@pytest.mark.req("NEG-30", "RCP-41", "RCP-48", "NEG-47")
def test_a_resolution_event_that_differs_from_its_fact_is_rejected(billing: Billing) -> None:
    """Another actor, another fact digest, or another event id for the same fact: no receipt, no change."""
    run = billing.in_case()
    good = billing.resolved(run)
    payload = json.loads(good.envelope)["payload"]
    before = billing.fence(run)
    digest = "finalizationReconciliationResolutionAppliedDigest"
    for changes in ({"actorWorkforcePrincipalId": "person-9"}, {digest: "d" * 64}, {}):
        event = FinalizationReconciliationResolutionAppliedEvent.decode({**payload, **changes})
        (outcome,) = billing.deliver(tell(event, run.run_id, good.destination))
        assert isinstance(outcome, NonRetryable)
    assert billing.fence(run) == before
    assert isinstance(billing.deliver(good)[0], Acknowledged)


@pytest.mark.req("CASE-24", "CASE-25", "REF-43", "NEG-31", "AMB-51")
def test_without_the_command_chain_nothing_enters_a_case(billing: Billing) -> None:
    """The gate opens only with every part; a worker refuses to start over less, and the database refuses the case."""
    for part in (*ROUTES, "decision_store", "command_handler"):
        chain = CommandChain(
            frozenset(ROUTES) - {part},
            decision_store=part != "decision_store",
            command_handler=part != "command_handler",
        )
        with pytest.raises(GateClosed, match=part):
            open_gate(billing.admin, chain, actor="tests")
        with pytest.raises(GateClosed):
            store.set_gate(billing.admin, enabled=True, command_chain=chain.parts, actor="tests")
        with pytest.raises(GateClosed, match=part):
            build_runner(billing.pool, billing.peers, gate=True, chain=chain)
    billing.close_gate()
    try:
        with pytest.raises(GateClosed):
            build_runner(billing.pool, billing.peers, gate=True)
        run = billing.admitted()
        billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
        run.in_conflict()
        billing.alone(run)
        closed = billing.once()
        assert closed.waiting["conflict_gate_closed"] == 1
        forced = billing.once(gate=True)
        assert forced.waiting["GateClosed"] == 1
        assert billing.state(run) == "pending"
        assert billing.finishes(run)[-1:] != ["reconciliation_required"]
        assert billing.events(run) == []
    finally:
        billing.open_gate()
    billing.work(gate=True)
    assert billing.state(run) == "reconciliation_required"
