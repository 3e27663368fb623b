"""The settlement chain is proved by each of its two owners, from its own database alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import pytest
from psycopg import Connection

from oceanway.billing import store_chain as billing_chain
from oceanway.billing.store_chain import BillingChain
from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.main import run
from oceanway.contracts.release import PROJECTION
from oceanway.installation.layout import Database
from oceanway.metering import store_chain as metering_chain
from oceanway.metering.store_chain import MeteringChain
from oceanway.operations.projector import new_projection
from seapost.projections.completeness import Proof, prove
from seapost.testing.databases import DatabaseServer
from tests.kit.oceanway.lives import Attempt, Life
from tests.kit.oceanway.pipeline import Pipeline

T = TypeVar("T")
AUDITOR = "oceanway_test_auditor"
OPEN = set(BillingChain._fields) - {"receipts", "watermarks", "caught_up"}


@pytest.fixture
def pipeline(database_server: DatabaseServer) -> Iterator[Pipeline]:
    """Five databases for one test."""
    opened = Pipeline.open(database_server)
    yield opened
    opened.close()


@pytest.fixture
def settled(pipeline: Pipeline) -> tuple[Life, Attempt]:
    """Give one run, settled to its end."""
    life = Life(pipeline).admit()
    attempt = life.attempt()
    life.finish(attempt)
    life.usage(attempt, "120")
    life.cost(attempt, "0.31")
    life.close()
    pipeline.settle()
    return life, attempt


def metering(pipeline: Pipeline) -> MeteringChain:
    """Metering's proof, as its auditor."""
    with pipeline.connect(Database.METERING) as connection:
        return metering_chain.settlement_chain(as_auditor(connection))


def billing(pipeline: Pipeline) -> BillingChain:
    """Billing's proof, as its auditor."""
    with pipeline.connect(Database.BILLING) as connection:
        return billing_chain.settlement_chain(as_auditor(connection))


def operations(pipeline: Pipeline) -> Proof:
    """The completeness proof of the operations projection."""
    with pipeline.connect(Database.CORE) as connection:
        return prove(connection, new_projection(PROJECTION[1]))


def as_auditor(connection: Connection[Any]) -> Connection[Any]:
    """Take on exactly the roles of the auditor's process."""
    connection.execute(
        f"do $$ begin create role {AUDITOR} nologin;"
        " exception when duplicate_object or unique_violation then null; end $$"
    )
    connection.execute(f"grant oceanway_auditor, seapost_auditor to {AUDITOR}")
    connection.execute(f"set local role {AUDITOR}")
    return connection


def change(pipeline: Pipeline, statement: LiteralString) -> None:
    """Damage billing's state where no guard of its own would notice."""
    with pipeline.connect(Database.BILLING) as connection:
        connection.execute("set local session_replication_role = replica")
        assert connection.execute(statement).rowcount == 1


@pytest.mark.req("ORD-07", "ORD-08")
def test_each_owner_proves_its_half_of_the_way(pipeline: Pipeline, settled: tuple[Life, Attempt]) -> None:
    """Published, not told, told, held back, evaluated: at each step exactly one of the two halves is open."""
    life, attempt = settled
    assert (metering(pipeline), metering(pipeline).is_complete) == (MeteringChain(1, 1, 0, 0, 0, 0, 1), True)
    assert (billing(pipeline), billing(pipeline).is_complete) == (BillingChain(1, 1, 0, 0, 0, 0, 1, 0, 0), True)

    life.usage(attempt, "150")
    while not metering(pipeline).pending:  # up to the event that billing has to hear of
        assert pipeline.deliver() + pipeline.work("metering")
    assert not metering(pipeline).is_complete
    assert billing(pipeline).is_complete  # what it was told is evaluated; of more it does not speak

    pipeline.deliver()
    assert metering(pipeline).is_complete
    told = billing(pipeline)
    assert (told.receipts, told.watermarks, told.pending_verification, told.unfinished_works) == (2, 1, 1, 1)
    assert not told.is_complete

    pipeline.settle()
    assert metering(pipeline).is_complete
    assert billing(pipeline).is_complete


@pytest.mark.req("ORD-07")
def test_operations_is_complete_without_the_chain_and_does_not_speak_of_it(
    pipeline: Pipeline, settled: tuple[Life, Attempt]
) -> None:
    """Its proof is over what operations was sent; an input that billing has not heard of changes nothing in it."""
    life, attempt = settled
    before = operations(pipeline)
    assert before.is_complete
    life.usage(attempt, "150")
    while not metering(pipeline).pending:
        assert pipeline.deliver() + pipeline.work("metering")
    after = operations(pipeline)
    assert after.is_complete
    assert after.document["sources"] == before.document["sources"]
    with pipeline.connect(Database.CORE) as connection:
        query = (
            "select distinct event_type from seapost.source_events where event_type ~ '^(metering|gateway|execution)'"
        )
        assert connection.execute(query).fetchall() == []


@pytest.mark.req("ORD-08")
def test_an_input_that_billing_refuses_for_good_stays_open_in_metering(
    pipeline: Pipeline, settled: tuple[Life, Attempt]
) -> None:
    """A quarantined delivery is no longer on its way, and no proof calls it arrived."""
    _ = settled
    with pipeline.connect(Database.METERING) as connection:
        connection.execute("set local session_replication_role = replica")
        connection.execute(
            "with gone as (delete from seapost.delivery_acknowledgement returning event_id, destination)"
            " insert into seapost.delivery_quarantine (event_id, destination, reason, error_ref, event_digest,"
            " attempt_id, quarantined_at)"
            " select g.event_id, g.destination, 'schema_invalid', 'test', e.digest, s.attempt_id, now()"
            " from gone as g join seapost.event as e using (event_id)"
            " join seapost.delivery_attempt_start as s on s.event_id = g.event_id and s.destination = g.destination"
            " where g.destination = 'billing_settlement_catch_up'"
        )
    found = metering(pipeline)
    assert (found.quarantined, found.acknowledged, found.is_complete) == (1, 0, False)
    assert billing(pipeline).is_complete


@pytest.mark.req("ORD-08")
@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        (
            "delete from seapost.inbox_receipt where consumer = 'billing_settlement_catch_up_consumer'",
            {"without_receipt"},
        ),
        (
            "update billing.settlement_inbox set settlement_input_snapshot_ref = 'another'",
            {"behind", "without_receipt"},
        ),
        ('update billing.dimension_state set last_evaluated = \'{"state": "none"}\'', {"behind"}),
        ("delete from billing.catch_up_work_finish", {"unfinished_works"}),
        ("delete from billing.catch_up_fence", {"awaiting_finalization"}),
    ],
    ids=["receipt", "watermark", "evaluation", "work", "fence"],
)
def test_a_missing_link_of_billing_is_found(
    pipeline: Pipeline, settled: tuple[Life, Attempt], damage: LiteralString, seen: set[str]
) -> None:
    """A receipt, a watermark, an evaluation, a Finish or a fence that is lost or wrong leaves the chain incomplete."""
    _ = settled
    change(pipeline, damage)
    found = billing(pipeline)
    assert {name for name in OPEN if getattr(found, name)} == seen
    assert not found.is_complete
    assert metering(pipeline).is_complete


@pytest.mark.req("ORD-08")
def test_the_command_says_how_each_owner_stands(
    pipeline: Pipeline, settled: tuple[Life, Attempt], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Complete: exit code 0. With one half open: a failed check, and the document says which."""
    _ = settled
    config = tmp_path / "oceanway.toml"
    lines = [f'{one.value} = "{database.dsn}"' for one, database in pipeline.databases.items()]
    _ = config.write_text("[databases]\n" + "\n".join(lines) + "\n[trust]\nown_logins = false\n")

    assert run(["prove", "--config", str(config), "--json"]) == ExitCode.DONE
    document = json.loads(capsys.readouterr().out)
    assert (document["metering"]["complete"], document["billing"]["complete"]) == (True, True)

    change(pipeline, "delete from billing.catch_up_work_finish")
    assert run(["prove", "--config", str(config)]) == ExitCode.CHECK_FAILED
    assert "unfinished works" in capsys.readouterr().out
