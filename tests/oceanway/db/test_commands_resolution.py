"""The chains of decisions: each step bound to the one before, two persons, and a grant for one workload."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from psycopg import Connection

from oceanway.contracts.errors import Incomplete, InvalidArgument, NotFound, OwnerConflict, Stale
from oceanway.contracts.facts.resolution import FinalizationReconciliationGrant, InvestigationEvidenceReference
from oceanway.contracts.facts.transitions import LateSettlementGrant
from oceanway.contracts.identity import Quad, quad_of
from oceanway.operations import commands, commands_late
from seapost.model.errors import ContractError
from seapost.testing.databases import TestDatabase
from seapost.transport.token import key_id
from tests.kit.oceanway.operations import Life
from tests.kit.oceanway.operations_cases import REFERENCES, BillingPeer, Cases
from tests.kit.oceanway.operations_direct import Direct

KEY = Ed25519PrivateKey.generate()
GATEWAY = "drive.core"
LATER = InvestigationEvidenceReference(reference_type="investigation", reference_schema_version="1", reference="A")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def billing() -> BillingPeer:
    """Give billing as a peer in memory."""
    return BillingPeer()


@pytest.fixture
def session(core_database: TestDatabase) -> Iterator[Connection[Any]]:
    """Give a session of the role that decides."""
    with core_database.connect("oceanway_operations_service", autocommit=True) as session:
        yield session


@pytest.fixture
def writer(core_database: TestDatabase, billing: BillingPeer) -> Iterator[Direct]:
    """Give version 1 of the projection."""
    with core_database.connect(autocommit=True) as session:
        yield Direct(session, billing, "1")


@pytest.fixture
def cases(core_database: TestDatabase, billing: BillingPeer, writer: Direct) -> Cases:
    """Give a run of this test with an open case."""
    cases = billing.know(Life())
    with core_database.connect(autocommit=True) as owner:
        cases.reserve(owner, 2)
    writer.apply(cases.request(1))
    return cases


def ref_of(cases: Cases) -> str:
    """The case of the first generation."""
    return cases.fields(1)["reconciliation_case_ref"]


def until_decided(
    session: Connection[Any], case_ref: str, verdict: Literal["granted", "refused"] = "granted", now: datetime = NOW
) -> None:
    """Take every step up to the decision."""
    seen = commands.preview(session, case_ref).decision
    _ = commands.request_resolution(session, case_ref, actor="alice", references=REFERENCES, now=now)
    _ = commands.approve(session, case_ref, approver="bob", seen=seen, now=now)
    _ = commands.prepare_candidate(session, case_ref, now=now)
    _ = commands.decide(session, case_ref, verdict=verdict, now=now)


@pytest.mark.req("CASE-25", "SEC-14", "CASE-19", "CASE-22")
def test_a_chain_ends_in_a_grant_that_names_every_step(session: Connection[Any], cases: Cases) -> None:
    """The signed claims carry the digests of request, candidate, decision and references, and the workload."""
    case_ref = ref_of(cases)
    until_decided(session, case_ref)
    granted = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    claims = jwt.decode(
        granted.token, KEY.public_key(), algorithms=["EdDSA"], options={"verify_exp": False, "verify_aud": False}
    )
    assert jwt.get_unverified_header(granted.token)["kid"] == key_id(KEY.public_key())
    grant = FinalizationReconciliationGrant.decode(claims)
    assert grant == granted.grant
    assert (grant.sub, grant.iss, grant.aud) == (GATEWAY, "operations", "billing")
    assert (grant.request_digest, grant.candidate_digest, grant.decision_digest) == (
        granted.request.quad().digest,
        granted.candidate.quad().digest,
        granted.decision.quad().digest,
    )
    assert quad_of(granted.decision, "finalization_reconciliation_candidate") == granted.candidate.quad()
    assert granted.token not in repr(granted)
    assert not {name for name in claims if "amount" in name.lower() or "ledger" in name.lower()}


@pytest.mark.req("CASE-25", "SEC-15")
def test_every_step_again_is_the_first_one(session: Connection[Any], cases: Cases) -> None:
    """Also the grant: the same identifier and the same token, later in its life."""
    case_ref = ref_of(cases)
    until_decided(session, case_ref)
    first = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    later = NOW + timedelta(seconds=20)
    until_decided(session, case_ref, now=later)
    again = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=later)
    assert (again.token, again.request, again.decision) == (first.token, first.request, first.decision)


@pytest.mark.req("CASE-25", "NEG-30")
def test_steps_out_of_order_and_by_one_person_are_refused(session: Connection[Any], cases: Cases) -> None:
    """Nothing before its predecessor; the requester approves nothing; an approval is about what was seen."""
    case_ref = ref_of(cases)
    seen = commands.preview(session, case_ref).decision
    for early in (
        lambda: commands.approve(session, case_ref, approver="bob", seen=seen, now=NOW),
        lambda: commands.prepare_candidate(session, case_ref, now=NOW),
        lambda: commands.decide(session, case_ref, verdict="granted", now=NOW),
        lambda: commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW),
    ):
        with pytest.raises(Incomplete):
            _ = early()
    _ = commands.request_resolution(session, case_ref, actor="alice", references=REFERENCES, now=NOW)
    with pytest.raises(InvalidArgument):
        _ = commands.approve(session, case_ref, approver="alice", seen=seen, now=NOW)
    other = Quad(seen.ref, "1", "jcs-sha256-v1", "0" * 64)
    with pytest.raises(Stale):
        _ = commands.approve(session, case_ref, approver="bob", seen=other, now=NOW)
    with pytest.raises(OwnerConflict):
        _ = commands.request_resolution(session, case_ref, actor="mallory", references=REFERENCES, now=NOW)


@pytest.mark.req("CASE-18", "NEG-30")
@pytest.mark.parametrize("references", [[], [*REFERENCES, *REFERENCES], [LATER, *REFERENCES]])
def test_references_are_sorted_single_and_not_none(
    session: Connection[Any], cases: Cases, references: list[InvestigationEvidenceReference]
) -> None:
    """An empty, repeated or unsorted set of references asks for nothing."""
    with pytest.raises(ContractError):
        _ = commands.request_resolution(session, ref_of(cases), actor="alice", references=references, now=NOW)


@pytest.mark.req("CASE-25", "CASE-22")
def test_a_refused_or_expired_chain_is_followed_by_a_new_one(session: Connection[Any], cases: Cases) -> None:
    """No grant from a refusal; the next request begins again, so that no case is without a way out."""
    case_ref = ref_of(cases)
    until_decided(session, case_ref, "refused")
    with pytest.raises(Incomplete):
        _ = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    until_decided(session, case_ref)
    first = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    later = NOW + timedelta(hours=2)
    until_decided(session, case_ref, now=later)
    second = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=later)
    assert first.grant.jti != second.grant.jti
    assert first.request.resolution_operation_id == second.request.resolution_operation_id


@pytest.mark.req("SEC-14", "NEG-30")
def test_a_grant_is_for_one_workload_and_a_short_time(session: Connection[Any], cases: Cases) -> None:
    """Asked for another workload it conflicts; it lives at most five minutes."""
    case_ref = ref_of(cases)
    until_decided(session, case_ref)
    _ = commands.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    with pytest.raises(OwnerConflict):
        _ = commands.mint_grant(session, case_ref, key=KEY, bound_workload="work.finalization", now=NOW)
    for seconds in (0, 301):
        with pytest.raises(InvalidArgument):
            _ = commands.mint_grant(
                session, case_ref, key=KEY, bound_workload=GATEWAY, lifetime_seconds=seconds, now=NOW
            )


@pytest.mark.req("CASE-22")
def test_an_ended_or_unknown_case_takes_no_step(session: Connection[Any], cases: Cases, writer: Direct) -> None:
    """The preview of an ended case still shows it."""
    case_ref = ref_of(cases)
    writer.apply(cases.resolve(1))
    assert commands.preview(session, case_ref).state == "ended"
    with pytest.raises(Stale):
        _ = commands.request_resolution(session, case_ref, actor="alice", references=REFERENCES, now=NOW)
    with pytest.raises(NotFound):
        _ = commands.preview(session, "no-such-case")


@pytest.mark.req("SEC-14")
def test_a_late_command_is_asked_for_approved_by_another_and_granted(
    session: Connection[Any], billing: BillingPeer, writer: Direct
) -> None:
    """It names the exposure as it stands; a newer step of the dimension makes it another operation."""
    life = Life()
    billing.know(life)
    writer.fold([life.finalize(), *life.open_exposure("3")])
    case_ref = life.open_case
    assert case_ref is not None
    command = commands_late.request_command(session, case_ref, action="waive", actor="alice", now=NOW)
    assert (command.exposure_amount, command.expected_state_revision) == ("3", 1)
    with pytest.raises(InvalidArgument):
        _ = commands_late.approve(session, case_ref, approver="alice", now=NOW)
    with pytest.raises(Incomplete):
        _ = commands_late.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    _ = commands_late.approve(session, case_ref, approver="bob", now=NOW)
    granted = commands_late.mint_grant(session, case_ref, key=KEY, bound_workload=GATEWAY, now=NOW)
    claims = jwt.decode(
        granted.token, KEY.public_key(), algorithms=["EdDSA"], options={"verify_exp": False, "verify_aud": False}
    )
    assert LateSettlementGrant.decode(claims) == granted.grant
    assert granted.grant.command_digest == command.quad().digest
    with pytest.raises(OwnerConflict):
        _ = commands_late.request_command(session, case_ref, action="charge", actor="alice", now=NOW)
    writer.apply(life.adjust("0"))
    newer = commands_late.request_command(session, case_ref, action="charge", actor="alice", now=NOW)
    assert newer.logical_operation_id != command.logical_operation_id
    writer.fold(life.close("charge"))
    with pytest.raises(Stale):
        _ = commands_late.preview(session, case_ref)
