"""What a switch refuses: versions that are not ready, proofs of something else, steps out of order."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from hashlib import sha256
from typing import Final
from uuid import uuid4

import pytest

from seapost.model.errors import InvalidArgument, NotReady, WrongPhase
from seapost.model.outcome import Acknowledged
from seapost.projections.completeness import prove
from seapost.projections.cutover import Cutover
from seapost.store import projection_cutover as store
from tests.kit import accounts as kit
from tests.kit.cutovers import SETTINGS, begun, current, cutover, onlooker, switched, two_versions
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel

__all__ = ["onlooker", "two_versions"]

WAITING: Final = "select count(*) from pg_locks where locktype = 'advisory' and not granted"


@pytest.mark.req("SET-30", "F41", "NEG-35")
@pytest.mark.parametrize("trouble", ["building", "empty", "lagging", "wrong set", "used set", "unknown"])
def test_a_version_that_is_not_ready_is_refused(database: TestDatabase, kernel: Kernel, trouble: str) -> None:
    """Each refusal names what is wrong, and readers stay where they are."""
    kernel.append(kit.moved("a", 1), kit.moved("b", 1))
    if trouble != "building":
        _ = kit.rebuild(database, kit.accounts("2"))
    words = {
        "building": "it must follow",
        "empty": "it is empty",
        "lagging": "it lacks more than 1",
        "wrong set": "names another version",
        "used set": "is active",
        "unknown": "not registered with this digest",
    }[trouble]
    chosen = cutover(database)
    match trouble:
        case "empty":
            kernel.run("set session_replication_role = replica")
            kernel.run("delete from seapost.inbox_receipt")
            kernel.run("set session_replication_role = origin")
        case "lagging":
            kernel.append(kit.moved("c", 1), kit.moved("d", 1))
            chosen = cutover(database, rest_max=1)
        case "wrong set" | "used set" | "unknown":
            set_version = {"wrong set": "7", "used set": "1", "unknown": "9"}[trouble]
            candidate = kit.definition(set_version, projection_version="1")
            if trouble == "wrong set":
                kernel.register(candidate)
            chosen = Cutover(
                kit.accounts("2"),
                database.dsn,
                delivery_set_version=set_version,
                definition_digest=sha256(candidate).digest(),
                actor="tester",
                settings=SETTINGS,
            )
        case _:
            pass
    with pytest.raises(NotReady, match=words):
        chosen.run()
    assert (current(kernel), kit.state(kernel, "1")) == ("1", "active")


@pytest.mark.req("SET-30", "NEG-35", "ORD-10", "ORD-17")
def test_no_other_proof_makes_a_version_ready(database: TestDatabase, kernel: Kernel) -> None:
    """Neither an older proof, nor one that does not speak of this candidate, nor none at all."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    projection = kit.accounts("2")
    with database.connect(autocommit=True) as verifier:
        general = prove(verifier, projection)
        assert general.is_complete
        token = begun(kernel)
        _ = store.freeze(kernel.connection, name=kit.NAME, token=token, rest_max=100)
        early = prove(verifier, projection)
        store.stop_active(kernel.connection, name=kit.NAME, token=token)
        for manifest in (general.digest, early.digest, sha256(b"none").digest()):
            with pytest.raises(NotReady, match="no proof of this very candidate"):
                _ = switched(kernel, token, manifest)
        assert current(kernel) == "1"
        fresh = prove(verifier, projection)
        proof = switched(kernel, token, fresh.digest)
        assert switched(kernel, token, fresh.digest) == proof
    assert current(kernel) == "2"


@pytest.mark.req("ORD-15", "ORD-17")
def test_steps_out_of_order_are_refused(database: TestDatabase, kernel: Kernel) -> None:
    """Each step knows the phases it may follow; a second switch and a wrong token are refused."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    token = begun(kernel)
    assert begun(kernel) == token
    with pytest.raises(WrongPhase):
        store.stop_active(kernel.connection, name=kit.NAME, token=token)
    with pytest.raises(WrongPhase):
        _ = switched(kernel, token, sha256(b"").digest())
    with pytest.raises(WrongPhase):
        store.finish(kernel.connection, name=kit.NAME, token=token, actor="tester")
    with pytest.raises(WrongPhase):
        _ = store.freeze(kernel.connection, name=kit.NAME, token=uuid4(), rest_max=100)
    kernel.register(kit.definition("8", projection_version="2"))
    with pytest.raises(WrongPhase, match="another switch"):
        _ = store.begin(
            kernel.connection,
            target=kit.accounts("2").target,
            delivery_set_version="8",
            definition_digest=sha256(kit.definition("8", projection_version="2")).digest(),
            producers=[],
            actor="tester",
        )
    cutover(database).run()
    with pytest.raises(WrongPhase):
        cutover(database).abandon()


@pytest.mark.req("AMB-03")
def test_a_switch_ends_when_every_other_producer_has_activated(database: TestDatabase, kernel: Kernel) -> None:
    """Its row holds the projection until then, so no second switch and no retirement can overtake it."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    cutover(database, producers=("billing", "core")).run()
    assert current(kernel) == "2"
    found = store.under_way(kernel.connection, name=kit.NAME)
    assert found is not None
    assert (found.phase, found.producers) == ("switched", ["billing", "core"])
    store.activated(kernel.connection, name=kit.NAME, token=found.token, producer="core")
    store.activated(kernel.connection, name=kit.NAME, token=found.token, producer="core")
    with pytest.raises(WrongPhase, match="1 of 2"):
        store.finish(kernel.connection, name=kit.NAME, token=found.token, actor="tester")
    with pytest.raises(InvalidArgument):
        store.activated(kernel.connection, name=kit.NAME, token=found.token, producer="nobody")
    store.activated(kernel.connection, name=kit.NAME, token=found.token, producer="billing")
    store.finish(kernel.connection, name=kit.NAME, token=found.token, actor="tester")
    store.finish(kernel.connection, name=kit.NAME, token=found.token, actor="tester")
    assert store.under_way(kernel.connection, name=kit.NAME) is None


@pytest.mark.req("RET-11", "AMB-42", "REF-05")
def test_a_version_is_retired_only_when_nothing_refers_to_it(database: TestDatabase, kernel: Kernel) -> None:
    """Rollback time, deliveries and quarantine hold it; a retired version is fed and served no more."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    target = kit.accounts("1").target

    def retire() -> None:
        store.retire(kernel.connection, target=target, confirmed="core and billing", actor="tester")

    with pytest.raises(NotReady, match="the version is active"):
        retire()
    cutover(database, rollback=timedelta(days=1)).run()
    with pytest.raises(NotReady, match="gone back to"):
        retire()
    kernel.run("update seapost.projection_version set rollback_until = now() where projection_version = '1'")
    with pytest.raises(NotReady, match="not finished"):
        retire()
    kernel.run("delete from seapost.delivery_ready")
    retire()
    retire()
    assert kit.state(kernel, "1") == "retired"
    [outcome] = asyncio.run(kit.deliver(database, kit.accounts("1"), kit.delivery(kit.moved("z", 1))))
    assert not isinstance(outcome, Acknowledged)
