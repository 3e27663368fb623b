"""The gateway: each statement about a chain is one transaction with its only event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from psycopg import Connection

from oceanway.contracts.envelopes import availability_chain_id
from oceanway.contracts.errors import InvalidArgument, NotFound, OwnerConflict, Stale
from oceanway.contracts.facts.execution import AttemptExecutionManifest
from oceanway.contracts.facts.gateway import (
    AttemptRouteBinding,
    AvailabilityNotReported,
    AvailabilityPending,
    AvailabilityUnavailable,
    EvidenceChain,
)
from oceanway.gateway import documents, store
from oceanway.gateway.transactions import (
    advance_availability,
    bind_routes,
    current_availability,
    quint,
    record_pre_binding,
)
from tests.kit.oceanway.core import LATER, NOW
from tests.kit.oceanway.core_faults import (
    APPENDED,
    DEFERRED,
    FOREIGN_KEY,
    INJECTED,
    RESTRICT,
    UNIQUE,
    failing,
    rows,
    sqlstate_of,
)
from tests.kit.oceanway.database import OwnerDatabase, TestDatabase
from tests.kit.oceanway.gateway import DEPLOYMENT, bound_attempt, cost, new_binding, new_route, stating, used

WRITES = (
    "gateway.evidence",
    "gateway.availability_snapshot",
    "gateway.availability_pointer",
    "gateway.event_source",
    *APPENDED,
)


@pytest.fixture(scope="module")
def gateway(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own attempts."""
    return owner_database("gateway")


@pytest.fixture
def service(gateway: TestDatabase) -> Iterator[Connection]:
    """Give a session of the role that states what is available."""
    with gateway.connect("oceanway_gateway_service") as connection:
        yield connection


def bound(service: Connection) -> tuple[AttemptRouteBinding, AttemptExecutionManifest]:
    """Make an attempt bound to its route."""
    route, binding, manifest = bound_attempt()
    bind_routes(service, [(route, binding)])
    service.commit()
    return binding, manifest


@pytest.mark.req("APP-16", "REF-22", "AMB-29")
def test_a_chain_advances_by_one_statement_with_one_event_each(gateway: TestDatabase, service: Connection) -> None:
    """Any state may follow any other; revision, state version and predecessor count without a gap."""
    binding, manifest = bound(service)
    differing = documents.evidence_conflict(
        binding, "provider_usage", "tokens", candidate_digest="1" * 64, detected_at=NOW
    )
    reports = [
        AvailabilityPending(),
        used(binding, "3"),
        differing,
        AvailabilityNotReported(),
        AvailabilityUnavailable(state_reason_code="provider_unreachable"),
        used(binding, "2.5"),
        used(binding, "3"),
    ]
    snapshots = advance_availability(service, [stating(manifest, binding, one) for one in reports[:3]], recorded_at=NOW)
    service.commit()
    for report in reports[3:]:
        snapshots += advance_availability(service, [stating(manifest, binding, report)], recorded_at=LATER)
        service.commit()
    with gateway.connect() as observer:
        stored = observer.execute(
            "select s.document, e.envelope, array_agg(d.destination::text) from gateway.availability_snapshot as s "
            "join seapost.event as e on e.event_id = s.current_changed_event_id "
            "join seapost.delivery as d using (event_id) where s.execution_attempt_id = %s "
            "group by s.document, e.envelope, s.state_version order by s.state_version",
            (binding.execution_attempt_id,),
        ).fetchall()
    assert [document for document, _, _ in stored] == [one.canonical() for one in snapshots]
    chain = EvidenceChain(
        execution_attempt_id=binding.execution_attempt_id,
        gateway_deployment_id=DEPLOYMENT,
        provider_evidence_kind="provider_usage",
        evidence_dimension_key="tokens",
    )
    for version, (_, envelope, destinations) in enumerate(stored, start=1):
        event = json.loads(envelope)
        assert destinations == ["metering_input_processor"]
        assert event["aggregate"] == {
            "kind": "availability_chain",
            "id": availability_chain_id(chain),
            "revision": version,
        }
        assert event["payload"]["currentAvailabilityDigest"] == snapshots[version - 1].quad().digest
        assert event["tenant"]["tenantId"] == manifest.tenant_id
    before = [one.predecessor for one in snapshots]
    assert before[0].state == "none"
    assert [one.to_json()["gatewayEvidenceAvailabilitySnapshotRef"] for one in before[1:]] == [
        one.quad().ref for one in snapshots[:-1]
    ]
    assert current_availability(service, [stating(manifest, binding, reports[0]).chain]) == [quint(snapshots[-1])]


@pytest.mark.req("REF-22")
def test_chains_of_one_attempt_are_independent(service: Connection) -> None:
    """Usage and cost, and each dimension, count by themselves; a cost may be negative."""
    binding, manifest = bound(service)
    snapshots = advance_availability(
        service,
        [
            stating(manifest, binding, used(binding, "3")),
            stating(manifest, binding, used(binding, "4", dimension="seconds"), dimension="seconds"),
            stating(manifest, binding, cost(binding, "-0.25"), kind="provider_cost", dimension="cost"),
        ],
        recorded_at=NOW,
    )
    assert [quint(one).state_version for one in snapshots] == [1, 1, 1]
    with pytest.raises(InvalidArgument):
        advance_availability(
            service, [stating(manifest, binding, used(binding, "4"), dimension="seconds")], recorded_at=NOW
        )


@pytest.mark.req("APP-16", "REF-22")
def test_a_statement_that_does_not_continue_its_chain_is_refused(service: Connection) -> None:
    """A late writer, another manifest, another binding, a body the statement does not name."""
    binding, manifest = bound(service)
    first = stating(manifest, binding, AvailabilityPending())
    (pending,) = advance_availability(service, [first], recorded_at=NOW)
    service.commit()
    other = documents.snapshot(stating(manifest, binding, AvailabilityNotReported()), None, recorded_at=NOW)
    skipped = documents.snapshot(first, quint(pending), recorded_at=NOW)
    beyond = documents.snapshot(first, quint(skipped), recorded_at=NOW)
    stranger, _ = bound(service)
    elsewhere = documents.snapshot(
        documents.Statement(
            manifest,
            new_binding(attempt=binding.execution_attempt_id, route=new_route("route-2")),
            "provider_usage",
            "tokens",
            AvailabilityPending(),
        ),
        quint(pending),
        recorded_at=NOW,
    )
    _, _, foreign = bound_attempt()
    unbound = new_binding()
    cases = [
        (other, store.NOTHING, Stale),
        (beyond, store.NOTHING, Stale),
        (elsewhere, store.NOTHING, InvalidArgument),
        (
            documents.snapshot(stating(foreign, binding, AvailabilityPending()), quint(pending), recorded_at=NOW),
            store.NOTHING,
            InvalidArgument,
        ),
        (
            documents.snapshot(stating(manifest, unbound, AvailabilityPending()), None, recorded_at=NOW),
            store.NOTHING,
            NotFound,
        ),
        (skipped, used(binding, "1").canonical(), InvalidArgument),
        (
            documents.snapshot(stating(manifest, binding, used(binding, "1")), quint(pending), recorded_at=NOW),
            store.NOTHING,
            InvalidArgument,
        ),
        (
            documents.snapshot(stating(manifest, binding, used(binding, "1")), quint(pending), recorded_at=NOW),
            used(stranger, "1").canonical(),
            InvalidArgument,
        ),
    ]
    for snapshot, evidence, error in cases:
        with pytest.raises(error):
            store.advance(
                service,
                snapshots=[snapshot.canonical()],
                evidence=[evidence],
                conflicts=[store.NOTHING],
                events=[b"{}"],
            )
        service.rollback()
    again = store.advance(
        service, snapshots=[pending.canonical()], evidence=[store.NOTHING], conflicts=[store.NOTHING], events=[b"{}"]
    )
    assert again == 0


@pytest.mark.req("APP-17", "NEG-24")
def test_what_is_known_before_the_binding_makes_no_event(gateway: TestDatabase, service: Connection) -> None:
    """It has a table of its own that can name neither an attempt nor an event, and no way out of it."""
    fields = {
        "gateway_deployment_id": DEPLOYMENT,
        "route_id": "route-1",
        "kind": "provider_usage",
        "dimension": "tokens",
    }
    snapshot_id = uuid4().hex
    with gateway.connect() as observer:
        before = rows(observer, "gateway")
        record_pre_binding(service, snapshot_id=snapshot_id, state="pending", **fields)  # pyright: ignore[reportArgumentType]
        record_pre_binding(service, snapshot_id=snapshot_id, state="pending", **fields)  # pyright: ignore[reportArgumentType]
        service.commit()
        after = rows(observer, "gateway")
        columns = observer.execute(
            "select column_name from information_schema.columns where table_schema = 'gateway' "
            "and table_name = 'pre_binding_snapshot' and (column_name like '%event%id' or column_name like '%attempt%')"
        ).fetchall()
    assert {table for table in after if after[table] != before[table]} == {"gateway.pre_binding_snapshot"}
    assert columns == []
    with pytest.raises(OwnerConflict):
        record_pre_binding(service, snapshot_id=snapshot_id, state="available", **fields)  # pyright: ignore[reportArgumentType]
    service.rollback()
    _, binding, manifest = bound_attempt()
    with pytest.raises(NotFound):
        advance_availability(service, [stating(manifest, binding, AvailabilityPending())], recorded_at=NOW)


@pytest.mark.req("REF-23")
def test_a_binding_never_changes_and_names_its_route(service: Connection) -> None:
    """One route for each attempt and deployment; a route with another mapping is another snapshot."""
    route, binding, _ = bound_attempt()
    assert bind_routes(service, [(route, binding)]) == 1
    assert bind_routes(service, [(route, binding)]) == 0
    service.commit()
    remapped = new_route(mapping="2")
    assert remapped.quad().ref != route.quad().ref
    with pytest.raises(OwnerConflict):
        bind_routes(service, [(remapped, new_binding(remapped, binding.execution_attempt_id))])
    service.rollback()
    with pytest.raises(InvalidArgument):
        bind_routes(service, [(remapped, new_binding(route))])


@pytest.mark.req("APP-16", "TST-02")
@pytest.mark.parametrize(
    "place",
    [*WRITES, DEFERRED + "gateway.availability_snapshot", "gateway.evidence_conflict_fact"],
)
def test_a_statement_is_whole_or_absent(gateway: TestDatabase, service: Connection, place: str) -> None:
    """A fault after any write or at the commit leaves no row, the pointer where it was; the repetition succeeds."""
    binding, manifest = bound(service)
    (pending,) = advance_availability(service, [stating(manifest, binding, AvailabilityPending())], recorded_at=NOW)
    service.commit()
    report = used(binding, "3")
    if place == "gateway.evidence_conflict_fact":
        report = documents.evidence_conflict(
            binding, "provider_usage", "tokens", candidate_digest="1" * 64, detected_at=NOW
        )
    statement = stating(manifest, binding, report)
    with gateway.connect() as observer:
        before = rows(observer, "gateway")
        with failing(gateway, place):
            stated = sqlstate_of(service, lambda: advance_availability(service, [statement], recorded_at=NOW))
        assert stated == INJECTED
        assert rows(observer, "gateway") == before
    assert current_availability(service, [statement.chain]) == [quint(pending)]
    (snapshot,) = advance_availability(service, [statement], recorded_at=NOW)
    service.commit()
    assert quint(snapshot).state_version == 2


@pytest.mark.req("NEG-50", "TST-10", "AMB-41")
def test_a_statement_without_its_event_or_with_two_is_refused(gateway: TestDatabase, service: Connection) -> None:
    """Even to the owner of the tables; and a pointer only ever moves by one."""
    binding, manifest = bound(service)
    statement = stating(manifest, binding, AvailabilityPending())
    (snapshot,) = advance_availability(service, [statement], recorded_at=NOW)
    service.commit()
    with gateway.connect("oceanway_gateway_owner") as owner:
        unannounced = (
            "insert into gateway.availability_snapshot select %s, execution_attempt_id, gateway_deployment_id, "
            "provider_evidence_kind, 'other', 1, null, attempt_route_binding_ref, attempt_execution_manifest_ref, "
            "state, null, null, digest, document, %s from gateway.availability_snapshot "
            "where gateway_evidence_availability_snapshot_ref = %s"
        )
        copy = (uuid4().hex, uuid4(), snapshot.quad().ref)
        assert sqlstate_of(owner, lambda: owner.execute(unannounced, copy)) == FOREIGN_KEY
        doubled = "insert into gateway.event_source values (%s, %s, %s, repeat('0', 64))"
        second = ("gateway.evidence-availability.current-changed@1", snapshot.quad().ref, uuid4())
        assert sqlstate_of(owner, lambda: owner.execute(doubled, second)) == UNIQUE
        leap = "update gateway.availability_pointer set state_version = 3 where execution_attempt_id = %s"
        assert sqlstate_of(owner, lambda: owner.execute(leap, (binding.execution_attempt_id,))) == RESTRICT
