"""One run through all five owners: every hop real, every database its own."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, LiteralString

import pytest

from oceanway.installation.layout import OWNERS, Database
from seapost.testing.databases import DatabaseServer
from tests.kit.oceanway.lives import Life
from tests.kit.oceanway.pipeline import Pipeline

_SCHEMAS: Final = """
select nspname from pg_catalog.pg_namespace where nspname !~ '^(pg_|information_schema$|public$)'"""


@pytest.fixture(scope="module")
def pipeline(database_server: DatabaseServer) -> Iterator[Pipeline]:
    """Five databases for this module."""
    opened = Pipeline.open(database_server)
    yield opened
    opened.close()


def _rows(pipeline: Pipeline, database: Database, statement: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    with pipeline.connect(database) as connection:
        return connection.execute(statement, values).fetchall()


def _ledger(pipeline: Pipeline, life: Life) -> dict[str, Decimal]:
    rows = _rows(
        pipeline,
        Database.BILLING,
        "select kind, sum(amount) from billing.ledger_entry where billing_reservation_id = %s group by kind",
        life.reservation_id,
    )
    return dict(rows)


def _unfinished(pipeline: Pipeline) -> int:
    """Deliveries that are not acknowledged, in all five databases."""
    counts = [
        _rows(pipeline, one, "select count(*) from seapost.outbox_deliveries where status <> 'acknowledged'")[0][0]
        for one in Database
    ]
    return sum(counts)


@pytest.mark.req("GEN-03", "GEN-04", "GEN-05", "GEN-06", "MTR-03", "FIN-02", "FIN-04", "CAT-03", "CAT-20", "OPS-13")
def test_a_run_is_reserved_executed_metered_settled_and_seen(pipeline: Pipeline) -> None:
    """120 tokens at 0.02: 2.40 of 10 are settled, the rest is released, and every delivery has its receipt."""
    life = Life(pipeline).admit()
    attempt = life.attempt()
    life.finish(attempt)
    life.usage(attempt, "120")
    life.cost(attempt, "0.31")
    life.close()

    pipeline.settle()

    assert _ledger(pipeline, life) == {"reserve": Decimal(10), "settle": Decimal("2.40"), "release": Decimal("7.60")}
    assert _unfinished(pipeline) == 0


@pytest.mark.req("OPS-15", "OPS-16", "NEG-42", "STO-03", "GEN-11")
def test_no_database_holds_what_belongs_to_another_owner_or_a_way_to_it(pipeline: Pipeline) -> None:
    """Each has the kernel's runtime, its own owners' schemas and nothing else; none can reach another database."""
    for database in Database:
        schemas = {name for (name,) in _rows(pipeline, database, _SCHEMAS)}
        extensions = {name for (name,) in _rows(pipeline, database, "select extname from pg_catalog.pg_extension")}

        assert schemas == {"seapost", *OWNERS[database]}
        assert extensions == {"plpgsql"}
        assert _rows(pipeline, database, "select srvname from pg_catalog.pg_foreign_server") == []
