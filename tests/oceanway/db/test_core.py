"""Core admits a run and its wallet together, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from psycopg import Connection

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.errors import InvalidArgument, OwnerConflict
from oceanway.contracts.events.core import RunCreated, WalletReserved
from oceanway.contracts.facts.admission import RunAdmissionManifest
from oceanway.contracts.identity import quad_fields
from oceanway.contracts.subject import RunFields
from oceanway.core import store
from oceanway.core.transactions import RunAdmission, admit, admit_many
from tests.kit.oceanway.core import LATER, NOW, STEPS, new_admission, new_manifest
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

WRITES = ("core.run", "core.event_source", "core.wallet_reservation", *APPENDED)


@pytest.fixture(scope="module")
def core(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own runs."""
    return owner_database("core")


@pytest.fixture
def service(core: TestDatabase) -> Iterator[Connection]:
    """Give a session of the role that admits."""
    with core.connect("oceanway_core_service") as connection:
        yield connection


def envelope(connection: Connection, event_id: object) -> dict[str, object]:
    """Read the stored envelope of an event."""
    row = connection.execute("select envelope from seapost.event where event_id = %s", (event_id,)).fetchone()
    assert row is not None
    return json.loads(row[0])


@pytest.mark.req("REF-15", "REF-17", "FIN-03")
def test_a_run_is_admitted_with_its_wallet(core: TestDatabase, service: Connection) -> None:
    """Two events of two aggregates, revision 1 each, about one subject; the run is the cause of the wallet."""
    admission = new_admission(project_id="project-1")
    admitted = admit(service, admission)
    service.commit()
    assert admitted.is_new
    assert admitted.manifest == admission.manifest
    observer = core.connect(autocommit=True)
    run = envelope(observer, admitted.run_created_event_id)
    wallet = envelope(observer, admitted.wallet_reserved_event_id)
    manifest = admission.manifest
    assert run["aggregate"] == {"kind": "run", "id": manifest.run_id, "revision": 1}
    assert wallet["aggregate"] == {"kind": "reservation", "id": manifest.billing_reservation_id, "revision": 1}
    assert wallet["correlation"] == {
        "correlationId": manifest.run_id,
        "causationId": str(admitted.run_created_event_id),
    }
    assert run["tenant"] == wallet["tenant"]
    created, reserved = (
        RunCreated.decode(json.dumps(run["payload"])),
        WalletReserved.decode(json.dumps(wallet["payload"])),
    )
    assert created.run_step_ids == sorted(STEPS)
    assert all(getattr(created, name) == getattr(reserved, name) for name in RunFields.model_fields)
    assert (reserved.reserved_amount, reserved.currency) == ("120.5", "EUR")
    (members,) = observer.execute(
        "select array_agg(destination order by destination) from seapost.delivery where event_id = any (%s)",
        ([admitted.run_created_event_id, admitted.wallet_reserved_event_id],),
    ).fetchall()
    assert members == (["core_operations", "core_operations"],)


@pytest.mark.req("REF-15")
def test_the_same_admission_again_is_answered_with_the_first(core: TestDatabase, service: Connection) -> None:
    """Also when it is made anew later: the moment is no part of it. No event is added."""
    admission = new_admission()
    first = admit(service, admission)
    service.commit()
    before = rows(core.connect(), "core")
    later = RunAdmissionManifest.assemble(
        **admission.manifest.model_dump(
            exclude={
                "created_at",
                "steps",
                *(
                    f"run_admission_manifest_{name}"
                    for name in ("schema_version", "digest", "digest_algorithm_version")
                ),
            }
        ),
        steps=admission.manifest.steps,
        created_at=LATER,
    )
    again = admit(service, RunAdmission(later, "120.5", "EUR"))
    service.commit()
    assert not again.is_new
    assert again.manifest.created_at == NOW
    assert (again.run_created_event_id, again.wallet_reserved_event_id) == (
        first.run_created_event_id,
        first.wallet_reserved_event_id,
    )
    assert rows(core.connect(), "core") == before


@pytest.mark.req("REF-15")
def test_another_admission_of_a_run_or_a_reservation_is_refused(service: Connection) -> None:
    """Other steps, another amount, another run on the same reservation: nothing of it is written."""
    admission = new_admission()
    admit(service, admission)
    service.commit()
    manifest = admission.manifest
    subject = {name: getattr(manifest, name) for name in RunFields.model_fields if name != "run_id"}
    others = [
        RunAdmission(manifest, "120.6", "EUR"),
        RunAdmission(manifest, "120.5", "USD"),
        RunAdmission(new_manifest({"step-1": ["tokens"]}, **subject, run_id=manifest.run_id), "120.5", "EUR"),
        RunAdmission(new_manifest(**subject), "120.5", "EUR"),
    ]
    for other in others:
        with pytest.raises(OwnerConflict):
            admit_many(service, [new_admission(), other])
        service.rollback()


@pytest.mark.req("REF-15", "AMB-41")
def test_events_about_something_else_are_refused(service: Connection) -> None:
    """The database compares tenant, account, reservation, run, steps and cause; nobody has to trust the caller."""
    manifest, other = new_manifest(), new_manifest()

    def run_event(source: RunAdmissionManifest, steps: list[str] | None = None) -> RunCreated:
        return RunCreated(
            **{name: getattr(source, name) for name in RunFields.model_fields},
            **quad_fields("run_admission_manifest", source.quad()),
            run_step_ids=steps or [step.run_step_id for step in source.steps],
            admitted_at=NOW,
        )

    def wallet_event(source: RunAdmissionManifest, **changes: str) -> WalletReserved:
        fields: dict[str, Any] = {name: getattr(source, name) for name in RunFields.model_fields}
        fields.update(changes)
        return WalletReserved(**fields, reserved_amount="1", currency="EUR", reservation_state_version=1)

    good = envelope_of(run_event(manifest), correlation_id=manifest.run_id)
    pairs = [
        (envelope_of(run_event(other), correlation_id=other.run_id), wallet_event(manifest)),
        (envelope_of(run_event(manifest, ["step-1"]), correlation_id=manifest.run_id), wallet_event(manifest)),
        *((good, wallet_event(manifest, **{name: "other"})) for name in ("tenant_id", "billing_account_id", "run_id")),
    ]
    for run, wallet in pairs:
        prepared = envelope_of(wallet, correlation_id=manifest.run_id, causation_id=str(run.event_id))
        with pytest.raises(InvalidArgument):
            store.admit(
                service, manifests=[manifest.canonical()], run_events=[run.envelope], wallet_events=[prepared.envelope]
            )
        service.rollback()
    uncaused = envelope_of(wallet_event(manifest), correlation_id=manifest.run_id, causation_id=str(uuid4()))
    with pytest.raises(InvalidArgument):
        store.admit(
            service, manifests=[manifest.canonical()], run_events=[good.envelope], wallet_events=[uncaused.envelope]
        )


@pytest.mark.req("TST-02")
@pytest.mark.parametrize("place", [*WRITES, DEFERRED + "core.run", DEFERRED + "core.wallet_reservation"])
def test_an_admission_is_whole_or_absent(core: TestDatabase, service: Connection, place: str) -> None:
    """A fault after any write or at the commit leaves no row; the repetition succeeds as if it were the first."""
    admission = new_admission()
    before = rows(core.connect(), "core")
    with failing(core, place):
        assert sqlstate_of(service, lambda: admit(service, admission)) == INJECTED
    assert rows(core.connect(), "core") == before
    assert admit(service, admission).is_new
    service.commit()


@pytest.mark.req("NEG-50", "TST-10", "AMB-41")
def test_a_run_without_its_event_or_with_two_is_refused(core: TestDatabase, service: Connection) -> None:
    """Even to the owner of the tables: the first at the commit, the second at once."""
    admitted = admit(service, new_admission())
    service.commit()
    owner = core.connect("oceanway_core_owner")
    manifest = new_manifest()
    unannounced = (manifest.run_id, manifest.billing_reservation_id, manifest.run_admission_manifest_ref, uuid4())
    copied = (
        "insert into core.run select %s, %s, billing_account_id, tenant_kind, tenant_id, workspace_id, project_id, %s, "
        "digest, document, %s from core.run limit 1"
    )
    assert sqlstate_of(owner, lambda: owner.execute(copied, unannounced)) == FOREIGN_KEY
    second = (admitted.manifest.run_admission_manifest_ref, uuid4())
    doubled = "insert into core.event_source values ('run.created@2.0', %s, %s, repeat('0', 64))"
    assert sqlstate_of(owner, lambda: owner.execute(doubled, second)) == UNIQUE
    for table in ("core.run", "core.wallet_reservation", "core.event_source"):
        emptied = f"delete from {table}"  # noqa: S608 - one of three names
        assert sqlstate_of(owner, lambda text=emptied: owner.execute(text)) == RESTRICT
