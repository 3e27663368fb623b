"""A version built beside the one that is read: complete, resumable, fenced, and stopped by nothing but poison."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from threading import Event
from uuid import uuid4

import psycopg
import pytest

from seapost.database.installer import GuardLevel
from seapost.database.pool import open_sync_pool
from seapost.model.errors import ClaimFenced, InvalidSetting, ProjectionChanged, Retry
from seapost.model.outcome import Acknowledged
from seapost.projections.feed import Feed
from seapost.projections.feeding import Feeder, OnPoison, Poisoned
from seapost.projections.rebuild import Progress, Rebuild, RebuildSettings
from seapost.store import projection_feed as store
from tests.kit import accounts as kit
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel


@pytest.fixture
def database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database with version 1, which is read, and version 2, which is being built."""
    database = database_server.create(GuardLevel.LEAN)
    kit.prepare_database(database, "1", "2")
    yield database
    database_server.drop(database)


@pytest.fixture
def kernel(database: TestDatabase) -> Iterator[Kernel]:
    """Give an onlooker with all rights."""
    with database.connect(autocommit=True) as connection:
        yield Kernel(connection)


@pytest.mark.req("ORD-02", "AMB-39", "REF-05")
@pytest.mark.parametrize("many", [True, False])
def test_a_rebuild_equals_the_fold_and_a_second_one_changes_nothing(
    database: TestDatabase, kernel: Kernel, *, many: bool
) -> None:
    """Every event of the source is folded once, in the order of its account, whoever shares the work."""
    envelopes = kit.movements(7, 30, 400)
    random.Random(8).shuffle(envelopes)
    kernel.append(*envelopes)
    report = kit.rebuild(database, kit.accounts("2", many=many), batch=64, workers=3)
    assert (report.applied, report.waiting, report.state, report.is_complete) == (400, 0, "shadow", True)
    assert kit.balances(kernel, "2") == kit.fold_of(envelopes)
    assert kit.receipts(kernel, "2") == 400
    again = kit.rebuild(database, kit.accounts("2", many=many))
    assert (again.applied, again.state, again.is_complete) == (0, "shadow", True)
    assert kit.balances(kernel, "2") == kit.fold_of(envelopes)
    assert kit.balances(kernel, "1") == []


@pytest.mark.req("SET-32", "AMB-39")
def test_events_that_a_delivery_brings_are_left_to_it(database: TestDatabase, kernel: Kernel) -> None:
    """A version that events freeze is fed only what froze another one; its receipts never settle for it."""
    mine, other = kit.moved("a", 1), kit.moved("b", 1)
    kernel.append(mine)
    kernel.activate("2", kit.definition("2"))
    kernel.append(other)
    report = kit.rebuild(database, kit.accounts("2"))
    assert report.applied == 1
    assert kit.balances(kernel, "2") == kit.fold_of([mine])
    [outcome] = asyncio.run(kit.deliver(database, kit.accounts("2"), kit.delivery(other, "2")))
    assert isinstance(outcome, Acknowledged)
    assert kit.balances(kernel, "2") == kit.fold_of([mine, other])


@pytest.mark.req("OPS-11", "OPS-12", "AMB-17")
def test_a_gap_waits_without_receipt_and_heals_when_the_revision_comes(database: TestDatabase, kernel: Kernel) -> None:
    """What lies beyond a missing revision is never folded, never given up, and needs nobody when it comes."""
    first, second, third = (kit.moved("a", revision) for revision in (1, 2, 3))
    kernel.append(first, third)
    report = kit.rebuild(database, kit.accounts("2"))
    assert (report.applied, report.waiting, report.is_complete, report.state) == (1, 1, False, "building")
    assert kernel.value(kit.GAPS) == 1
    kernel.append(second)
    report = kit.rebuild(database, kit.accounts("2"))
    assert (report.applied, report.is_complete) == (2, True)
    assert kernel.value(kit.GAPS) == 0
    assert kit.balances(kernel, "2") == kit.fold_of([first, second, third])


@pytest.mark.req("SEC-20", "NEG-36", "AMB-39")
def test_a_claim_that_was_taken_over_applies_nothing_more(database: TestDatabase, kernel: Kernel) -> None:
    """The newer claim fences the older one at reading, at folding and at writing its progress."""
    kernel.append(kit.moved("a", 1))
    projection = kit.accounts("2")
    with open_sync_pool(database.dsn, part="feed", role=kit.ROLE) as pool:
        _ = projection.inbox.close()
        with pool.connection() as connection:
            old = store.claim(connection, target=projection.target, actor="first")
        feeder = Feeder(projection, pool, old)
        with pool.connection() as connection:
            read = store.feed(
                connection,
                target=projection.target,
                token=old,
                after=store.FIRST,
                limit=10,
                slot=store.Slot(0, 1),
            )
            new = store.claim(connection, target=projection.target, actor="second")
        with pytest.raises(ClaimFenced):
            _ = feeder.take(read)
        with pytest.raises(ClaimFenced):
            _ = feeder.step(store.FIRST)
        with pool.connection() as connection, pytest.raises(ClaimFenced):
            _ = store.progress(connection, target=projection.target, token=old, cursor=None, applied=1)
        assert kit.receipts(kernel, "2") == 0
        assert Feeder(projection, pool, new).take(read).applied == 1


@pytest.mark.req("SEC-20")
def test_pausing_a_claim_stops_the_feed(database: TestDatabase, kernel: Kernel) -> None:
    """Nobody feeds a paused version, whatever token they hold."""
    kernel.append(kit.moved("a", 1))
    projection = kit.accounts("2")
    _ = projection.inbox.close()
    with open_sync_pool(database.dsn, part="feed", role=kit.ROLE) as pool:
        with pool.connection() as connection:
            token = store.claim(connection, target=projection.target, actor="feeder")
            store.pause(connection, target=projection.target, actor="operator")
        for held in (token, uuid4()):
            with pytest.raises(ClaimFenced):
                Feed(projection, pool, held).run(Event())
    assert kit.receipts(kernel, "2") == 0


@pytest.mark.req("F40")
def test_poison_stops_its_version_alone_and_is_remembered(database: TestDatabase, kernel: Kernel) -> None:
    """The version names the event and why, also after a restart; the other version does not notice."""
    bad = kit.moved("bad", 1, word="explode")
    kernel.append(kit.moved("good", 1), bad, kit.moved("bad", 2), kit.moved("good", 2))
    acts = kit.Acts({"explode": _explode})
    for _ in range(2):
        with pytest.raises(Poisoned) as raised:
            _ = kit.rebuild(database, kit.accounts("2", acts=acts), workers=1)
        assert [raised.value.event_id] == kit.event_ids([bad])
        assert kernel.rows(
            "select stalled_event_id, stalled_reason from seapost.projection_versions where projection_version = '2'"
        ) == [(raised.value.event_id, "LookupError: explode")]
    report = kit.rebuild(database, kit.accounts("1"))
    assert report.applied == 0  # its events come by deliveries
    repaired = kit.rebuild(database, kit.accounts("2"))
    assert (repaired.is_complete, kit.receipts(kernel, "2")) == (True, 4)
    assert kernel.rows("select stalled_event_id from seapost.projection_versions where projection_version = '2'") == [
        (None,)
    ]


@pytest.mark.req("F40", "OPS-12")
def test_poison_that_is_passed_over_is_never_complete(database: TestDatabase, kernel: Kernel) -> None:
    """By policy the rest goes on; the event has no receipt, its aggregate waits, and the version stays unfinished."""
    kernel.append(kit.moved("bad", 1, word="explode"), kit.moved("bad", 2), *kit.movements(3, 5, 40))
    acts = kit.Acts({"explode": _explode})
    report = kit.rebuild(database, kit.accounts("2", acts=acts), on_poison=OnPoison.SKIP, workers=1)
    assert (report.applied, report.skipped, report.is_complete, report.state) == (40, 1, False, "building")
    assert kit.receipts(kernel, "2") == 40
    assert [account for account, *_ in kit.balances(kernel, "2") if account == "bad"] == []


def _explode() -> None:
    raise LookupError("explode")


@pytest.mark.req("F40")
def test_what_says_nothing_about_the_event_is_no_poison(database: TestDatabase, kernel: Kernel) -> None:
    """A deadlock is tried again; nothing is remembered against the event."""
    kernel.append(kit.moved("a", 1, word="stumble"))
    errors = [psycopg.errors.DeadlockDetected("once"), psycopg.OperationalError("twice")]

    def stumble() -> None:
        if errors:
            raise errors.pop()

    report = kit.rebuild(database, kit.accounts("2", acts=kit.Acts({"stumble": stumble})))
    assert (report.applied, report.is_complete, errors) == (1, True, [])
    assert kernel.value("select count(*) from seapost.projection_version where stalled_event_id is not null") == 0


@pytest.mark.req("OPS-11")
def test_a_mutation_that_asks_to_wait_holds_its_account_alone(database: TestDatabase, kernel: Kernel) -> None:
    """A returned Retry keeps its event and those behind it for a later pass, without receipt."""
    envelopes = [kit.moved("a", 1, word="hold"), kit.moved("a", 2), kit.moved("b", 1)]
    kernel.append(*envelopes)
    answers: list[Retry | None] = [Retry("not yet"), Retry("not yet")]
    acts = kit.Acts({"hold": lambda: answers.pop() if answers else None})
    report = kit.rebuild(database, kit.accounts("2", many=False, acts=acts))
    assert (report.applied, report.is_complete) == (1, False)
    report = kit.rebuild(database, kit.accounts("2", many=False, acts=acts))
    assert (report.applied, report.is_complete) == (2, True)


@pytest.mark.req("OPS-10", "ORD-02")
def test_two_events_of_one_revision_are_poison(database: TestDatabase, kernel: Kernel) -> None:
    """The source holds another event of a revision that was applied: never folded, never hidden."""
    twin = kit.moved("a", 1, 5)
    kernel.append(kit.moved("a", 1), twin)
    with pytest.raises(Poisoned, match="Reject"):
        _ = kit.rebuild(database, kit.accounts("2"), workers=1)
    assert kit.receipts(kernel, "2") == 1


@pytest.mark.req("F39")
def test_a_rebuild_refuses_a_role_that_could_append(database: TestDatabase) -> None:
    """Nothing but the view changes in a replay: a session that may append events is not even begun."""
    with pytest.raises(InvalidSetting, match="cannot append"):
        _ = Rebuild(kit.accounts("2"), database.dsn, actor="tester").run()


@pytest.mark.req("F39")
def test_a_mutation_cannot_append_while_it_is_replayed(database: TestDatabase, kernel: Kernel) -> None:
    """A fold that tries to say more is refused by the database, and nothing of its batch stays."""
    kernel.append(kit.moved("a", 1))
    projection = kit.accounts("3", many=False)
    extra = kit.moved("b", 1)
    projection = kit.Projection(
        kit.NAME, "2", consumer=kit.CONSUMER, destination=kit.DESTINATION, tables=("public.balance_2",)
    )

    @projection.on(kit.Moved)
    def apply(transaction: psycopg.Connection[object], event: kit.Moved, context: object) -> None:
        del event, context
        transaction.execute("select seapost.outbox_append_v1(%s)", ([extra],))

    with pytest.raises(Poisoned, match="InsufficientPrivilege"):
        _ = kit.rebuild(database, projection)
    assert kernel.count("event") == 1


@pytest.mark.req("AMB-39", "REF-51")
def test_events_of_other_databases_are_kept_and_fed_from_here(database: TestDatabase, kernel: Kernel) -> None:
    """What a delivery brought from elsewhere is kept as it came, once, and rebuilds the next version."""
    foreign = [kit.moved("a", 1, producer="harbour"), kit.moved("a", 2, producer="harbour")]
    own = kit.moved("own", 1)
    kernel.append(own)
    claims = [kit.delivery(text) for text in (*foreign, own)]
    for _ in range(2):
        outcomes = asyncio.run(kit.deliver(database, kit.accounts("1"), *claims))
        assert all(isinstance(outcome, Acknowledged) for outcome in outcomes)
    assert kernel.rows("select envelope from seapost.accepted_event order by event_id") == [(text,) for text in foreign]
    report = kit.rebuild(database, kit.accounts("2"))
    assert (report.applied, report.is_complete) == (3, True)
    assert kit.balances(kernel, "2") == kit.fold_of([*foreign, own]) == kit.balances(kernel, "1")


def test_a_changed_projection_is_a_new_version(database: TestDatabase, kernel: Kernel) -> None:
    """Other events or tables under a registered version are refused; the same ones are answered with its state."""
    with database.connect(autocommit=True) as connection:
        assert kit.accounts("2").register(connection, actor="tester") == "building"
        changed = kit.Projection(kit.NAME, "2", consumer=kit.CONSUMER, destination=kit.DESTINATION)
        with pytest.raises(ProjectionChanged):
            _ = changed.register(connection, actor="tester")
    assert kit.state(kernel, "2") == "building"


def test_a_migration_runs_once_with_the_registration(database: TestDatabase, kernel: Kernel) -> None:
    """The tables of a version appear with it, or not at all."""
    made = kit.Projection("stock", "1", migration="create table public.stock (item text)", tables=("public.stock",))
    broken = kit.Projection("waste", "1", migration="create table public.waste (item nonsense)")
    with database.connect(autocommit=True) as connection:
        assert [made.register(connection, actor="tester") for _ in range(2)] == ["active", "active"]
        with pytest.raises(psycopg.Error):
            _ = broken.register(connection, actor="tester")
    assert kernel.value("select to_regclass('public.stock') is not null")
    assert kernel.value("select count(*) from seapost.projection_version where projection_name = 'waste'") == 0


@pytest.mark.req("OPS-07")
def test_progress_is_told_and_the_rate_is_kept(database: TestDatabase, kernel: Kernel) -> None:
    """The callback counts up to what is expected; a limited rebuild takes at least the time its rate asks for."""
    kernel.append(*kit.movements(5, 10, 60))
    told: list[Progress] = []
    settings = RebuildSettings(role=kit.ROLE, rate=200, batch=10, workers=1)
    report = Rebuild(kit.accounts("2"), database.dsn, actor="tester", settings=settings).run(told.append)
    assert (told[-1].done, told[-1].expected, told[-1].seconds_left) == (60, 60, 0)
    assert report.seconds >= 60 / 200
    assert kernel.rows(
        "select applied_count, expected_count, finished_at is not null from seapost.projection_rebuilds"
    ) == [(60, 60, True)]


@pytest.mark.parametrize(
    ("settings", "words"), [({"workers": 0}, "workers"), ({"batch": 0}, "batch"), ({"rate": 0.0}, "rate")]
)
def test_settings_out_of_range_are_named(settings: dict[str, float], words: str) -> None:
    """Each limit says which setting broke it."""
    with pytest.raises(InvalidSetting, match=words):
        _ = RebuildSettings(**settings)  # pyright: ignore[reportArgumentType]
