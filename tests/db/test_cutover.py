"""A switch: frozen in one snapshot, caught up to its border, and done in one transaction; readers follow it."""

from __future__ import annotations

import asyncio
import threading
from hashlib import sha256
from typing import Final

import pytest

from seapost.database.pool import open_sync_pool
from seapost.model.errors import ClaimFenced, OutsideCandidate, SwitchUnderWay
from seapost.model.outcome import Acknowledged, ErrorCode, Retryable
from seapost.projections import reading
from seapost.projections.cutover import Cutover
from seapost.projections.feed import Feed
from seapost.projections.feeding import Feeder
from seapost.store import projection_cutover as store
from seapost.store import projection_feed as feed_store
from tests.kit import accounts as kit
from tests.kit.cutovers import SETTINGS, begun, current, cutover, onlooker, two_versions
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.kernel import Kernel

__all__ = ["onlooker", "two_versions"]

WAITING: Final = "select count(*) from pg_locks where locktype = 'advisory' and not granted"


@pytest.mark.req("ORD-15", "ORD-16", "ORD-17", "SET-30", "SET-31", "REF-05", "REF-54")
def test_a_switch_moves_pointer_states_and_delivery_set_at_once(database: TestDatabase, kernel: Kernel) -> None:
    """After it, new events freeze the new version, and the former one drains until its rollback time."""
    before = kit.movements(1, 5, 30)
    kernel.append(*before)
    assert kit.rebuild(database, kit.accounts("2")).state == "shadow"
    late = [kit.moved(f"late-{number}", 1) for number in range(10)]
    kernel.append(*late)
    told: list[str] = []
    cutover(database).run(told.append)
    assert told[0] == "frozen; 10 events to catch up"
    assert (current(kernel), kit.state(kernel, "1"), kit.state(kernel, "2")) == ("2", "draining", "active")
    assert kernel.value("select delivery_set_version from seapost.delivery_set_version where status = 'active'") == "2"
    assert kit.balances(kernel, "2") == kit.fold_of([*before, *late])
    new = kit.moved("new", 1)
    kernel.append(new)
    assert (
        kernel.value(
            "select m.projection_version from seapost.delivery_ready as r"
            " join seapost.delivery_set_member as m using (member_id) where r.event_id = %s",
            kit.event_ids([new])[0],
        )
        == "2"
    )
    assert kernel.rows("select outcome, from_version, to_version from seapost.projection_switch") == [
        ("switched", "1", "2")
    ]
    proof = kernel.value("select convert_from(readiness_proof, 'UTF8')::jsonb from seapost.projection_switch")
    assert proof["candidateDigest"] == kernel.value(
        "select encode(sha256(candidate), 'hex') from seapost.projection_switch"
    )
    assert kernel.value(
        "select readiness_proof_digest = sha256(s.readiness_proof)"
        " from seapost.projection_pointer, seapost.projection_switch as s"
    )


@pytest.mark.req("SET-31", "SET-32", "NEG-51", "AMB-39", "ORD-18")
def test_what_was_frozen_to_the_old_version_goes_on_and_the_new_one_is_fed(
    database: TestDatabase, kernel: Kernel
) -> None:
    """An old delivery is settled by the old version alone; the new version gets the event by its feed."""
    old = kit.moved("a", 1)
    _ = kit.rebuild(database, kit.accounts("2"))
    kernel.append(kit.moved("seed", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    kernel.append(old)
    cutover(database).run()
    wrong, right = kit.delivery(old, "1"), kit.delivery(old, "1")
    [refused] = asyncio.run(kit.deliver(database, kit.accounts("2"), wrong))
    assert isinstance(refused, Retryable)
    assert refused.code is ErrorCode.DEPENDENCY_UNAVAILABLE
    [outcome] = asyncio.run(kit.deliver(database, kit.accounts("1"), right))
    assert isinstance(outcome, Acknowledged)
    assert [row[0] for row in kit.balances(kernel, "2")] == ["a", "seed"]
    follow = kit.moved("b", 1)
    kernel.append(follow)
    projection = kit.accounts("1")
    _ = projection.inbox.close()
    with open_sync_pool(database.dsn, part="feed", role=kit.ROLE) as pool:
        with pool.connection() as connection:
            token = feed_store.claim(connection, target=projection.target, actor="feeder")
        assert Feed(projection, pool, token).catch_up() == 1  # "b"; "seed" comes by the delivery that it froze
    assert [row[0] for row in kit.balances(kernel, "1")] == ["a", "b"]


@pytest.mark.req("ORD-16", "ORD-18", "SEC-20", "NEG-36")
def test_nothing_outside_the_border_and_no_former_claim_gets_in(database: TestDatabase, kernel: Kernel) -> None:
    """From the freeze on, the shadow folds exactly the members of the candidate, under the new claim."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    projection = kit.accounts("2")
    _ = projection.inbox.close()
    inside, outside = kit.moved("b", 1), kit.moved("c", 1)
    kernel.append(inside)
    with open_sync_pool(database.dsn, part="feed", role=kit.ROLE) as pool:
        with pool.connection() as connection:
            former = feed_store.claim(connection, target=projection.target, actor="feeder")
        token = begun(kernel)
        with pytest.raises(SwitchUnderWay), pool.connection() as connection:
            _ = feed_store.claim(connection, target=projection.target, actor="another")
        frozen = store.freeze(kernel.connection, name=kit.NAME, token=token, rest_max=100)
        assert frozen.rest == 1
        assert store.freeze(kernel.connection, name=kit.NAME, token=token, rest_max=100) == frozen
        kernel.append(outside)
        events = [
            feed_store.SourceEvent(event_id, text, sha256(text).digest())
            for event_id, text in zip(kit.event_ids([inside, outside]), [inside, outside], strict=True)
        ]
        with pytest.raises(ClaimFenced):
            _ = Feeder(projection, pool, former).take(events[:1])
        with pytest.raises(OutsideCandidate):
            _ = Feeder(projection, pool, frozen.claim_token).take(events)
        assert kit.receipts(kernel, "2") == 1
        assert Feed(projection, pool, frozen.claim_token, is_bounded=True).catch_up() == 1
    assert kit.receipts(kernel, "2") == 2


@pytest.mark.req("ORD-17", "AMB-43")
def test_while_the_active_version_drains_its_deliveries_are_told_to_come_again(
    database: TestDatabase, kernel: Kernel
) -> None:
    """They are answered retryable, with nothing written; giving up the switch lets them in again."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    token = begun(kernel)
    _ = store.freeze(kernel.connection, name=kit.NAME, token=token, rest_max=100)
    store.stop_active(kernel.connection, name=kit.NAME, token=token)
    late = kit.delivery(kit.moved("late", 1))
    [outcome] = asyncio.run(kit.deliver(database, kit.accounts("1"), late))
    assert isinstance(outcome, Retryable)
    assert outcome.code is ErrorCode.CAPACITY_PROTECTED
    assert kit.receipts(kernel, "1") == 0
    cutover(database).abandon()
    [outcome] = asyncio.run(kit.deliver(database, kit.accounts("1"), late))
    assert isinstance(outcome, Acknowledged)
    assert (current(kernel), kit.state(kernel, "2")) == ("1", "shadow")


@pytest.mark.req("ORD-17", "AMB-43")
def test_stopping_the_active_version_waits_for_what_it_is_applying(database: TestDatabase, kernel: Kernel) -> None:
    """A transaction in flight ends first; none begins afterwards."""
    kernel.append(kit.moved("a", 1))
    _ = kit.rebuild(database, kit.accounts("2"))
    token = begun(kernel)
    _ = store.freeze(kernel.connection, name=kit.NAME, token=token, rest_max=100)
    with database.connect() as applying, database.connect(autocommit=True) as switching:
        applying.execute("select * from seapost.projection_meet_v2('accounts', '1', null, '{}', '{}', '{}', '{}')")
        waiting = threading.Thread(
            target=store.stop_active, args=(switching,), kwargs={"name": kit.NAME, "token": token}
        )
        waiting.start()
        _ = eventually(lambda: kernel.value(WAITING) > 0, what="the stop waits for the transaction in flight")
        assert waiting.is_alive()
        applying.rollback()
        waiting.join(10)
    assert kernel.value("select phase from seapost.projection_cutover") == "draining_active"


@pytest.mark.req("REF-05", "F41")
def test_going_back_is_a_switch_to_the_version_that_drains(database: TestDatabase, kernel: Kernel) -> None:
    """It needs a new delivery set, because no status goes back; readers lose nothing either way."""
    before = kit.movements(3, 4, 20)
    kernel.append(*before)
    for claim in [kit.delivery(text) for text in before]:
        _ = asyncio.run(kit.deliver(database, kit.accounts("1"), claim))
    kernel.run("delete from seapost.delivery_ready")
    _ = kit.rebuild(database, kit.accounts("2"))
    cutover(database).run()
    after = [kit.moved(f"after-{number}", 1) for number in range(5)]
    kernel.append(*after)
    back = kit.definition("3", projection_version="1")
    kernel.register(back)
    Cutover(
        kit.accounts("1"),
        database.dsn,
        delivery_set_version="3",
        definition_digest=sha256(back).digest(),
        actor="tester",
        settings=SETTINGS,
    ).run()
    assert (current(kernel), kit.state(kernel, "1"), kit.state(kernel, "2")) == ("1", "active", "draining")
    assert kit.balances(kernel, "1") == kit.fold_of([*before, *after])


@pytest.mark.req("F41")
def test_readers_follow_the_pointer_by_a_view_and_by_their_own_events(database: TestDatabase, kernel: Kernel) -> None:
    """The switching view shows the current version and scans no other; a writer learns whether his event is in it."""
    event = kit.moved("a", 1)
    kernel.append(event)
    tables = {version: f"public.{kit.table_of(version)}" for version in ("1", "2")}
    kernel.connection.execute(reading.switching_view("public.balance", kit.NAME, tables))
    _ = kit.rebuild(database, kit.accounts("2"))
    ids = kit.event_ids([event])
    assert (kernel.count("projection_pointer"), reading.applied(kernel.connection, kit.NAME, ids)) == (1, False)
    assert kernel.rows("select account from public.balance") == []
    cutover(database).run()
    assert reading.applied(kernel.connection, kit.NAME, ids)
    assert reading.current(kernel.connection, kit.NAME) == "2"
    assert kernel.rows("select account from public.balance") == [("a",)]
    plan = "\n".join(
        row[0] for row in kernel.connection.execute("explain (analyze, timing off) select * from public.balance")
    )
    assert "never executed" in plan
