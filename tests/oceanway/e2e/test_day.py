"""A small day with all of its trouble, through five real databases, to a clean audit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oceanway.demo.plan import plan
from oceanway.installation.layout import Database
from seapost.testing.databases import DatabaseServer
from tests.kit.oceanway.execution_day import PlayedDay
from tests.kit.oceanway.pipeline import Pipeline

SEED = 41
RUNS = 30


@pytest.fixture(scope="module")
def pipeline(database_server: DatabaseServer) -> Iterator[Pipeline]:
    """Five databases for this module."""
    opened = Pipeline.open(database_server)
    yield opened
    opened.close()


@pytest.mark.req("APP-15", "APP-21", "GEN-04", "GEN-05")
def test_a_day_with_every_trouble_balances_to_the_cent(pipeline: Pipeline, tmp_path: Path) -> None:
    """Contradictions of three owners, late words, an account that cannot pay: nothing is lost, doubled or unbalanced.

    Every wave is played twice, as a driver does that was interrupted.
    """
    day = plan(SEED, RUNS)
    assert {run.trouble for run in day.runs} == {"none", "execution", "usage", "binding", "settlement"}
    assert any(run.is_disputed for run in day.runs)

    found = PlayedDay(pipeline, day, tmp_path).play()

    assert found.defects == []
    assert (found.runs, found.quarantined) == (RUNS, 0)
    assert found.acknowledged == found.deliveries >= found.events
    with pipeline.connect(Database.BILLING) as billing:
        reasons = billing.execute(
            "select distinct convert_from(document, 'UTF8')::jsonb #>> '{outcome,reason,kind}' "
            "from billing.finalization_decision where convert_from(document, 'UTF8')::jsonb #>> '{outcome,state}' = "
            "'reconciliation_required' order by 1"
        ).fetchall()
        blocked = billing.execute("select count(*) > 0 from billing.catch_up_work_blocked").fetchone()
    assert blocked == (True,)
    assert reasons == [("execution_conflict",), ("settlement_conflict",)]
    assert found.cases >= found.resolved >= len(reasons)
