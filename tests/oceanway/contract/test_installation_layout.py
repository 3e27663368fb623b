"""The layout against the release: what is dispatched where, who receives it, and who may read what."""

from __future__ import annotations

from typing import Any

import pytest

from oceanway.cli.composition import events_of, projections_of, release
from oceanway.contracts import (
    reads_billing,
    reads_execution,
    reads_gateway,
    reads_metering,
    reads_operations,
)
from oceanway.contracts.events import EVENTS
from oceanway.contracts.reads import ReadOperation
from oceanway.installation.keys import CALLERS
from oceanway.installation.layout import DESTINATIONS, DISPATCHED, OWNERS, SERVED, Database

OPERATIONS: list[ReadOperation[Any, Any]] = [
    one
    for module in (reads_billing, reads_execution, reads_gateway, reads_metering, reads_operations)
    for one in vars(module).values()
    if isinstance(one, ReadOperation)
]


@pytest.mark.req("SET-21", "DLV-01")
def test_each_database_dispatches_to_exactly_the_destinations_of_its_events() -> None:
    """Thirteen events with one producer each; a dispatcher serves what they are routed to, and nothing else."""
    members = list(release())
    assert sorted(event.event_type for one in Database for event in events_of(one)) == sorted(
        event.event_type for event in EVENTS
    )
    for database in Database:
        written = {event.event_type for event in events_of(database)}
        assert {one.destination for one in members if one.event_type in written} == set(DISPATCHED[database])
    assert {one.destination for one in members} == set(DESTINATIONS)


def test_only_the_database_of_operations_applies_a_projection() -> None:
    """The release names one, and the database of Core holds it."""
    assert [(one.name, one.version) for one in projections_of(OWNERS[Database.CORE], release())] == [
        ("operations", "1")
    ]
    for database in set(Database) - {Database.CORE}:
        assert projections_of(OWNERS[database], release()) == []


@pytest.mark.req("SEC-08", "SEC-13", "NEG-11")
def test_every_read_has_an_owner_with_a_port_and_callers_with_a_key() -> None:
    """A read that nobody serves or a caller that does not exist would be found here; nothing lists or browses."""
    assert len(OPERATIONS) > 10
    for one in OPERATIONS:
        assert one.audience in SERVED, one.name
        assert one.callers <= set(CALLERS), one.name
        assert not {"list", "latest", "admin", "search", "all"} & set(one.name.lower().split()), one.name
        assert one.name.startswith(("read", "validate", "reserve")), one.name
        assert not one.name.endswith("s") or one.name.endswith("ForOperations"), one.name


@pytest.mark.req("SEC-09", "SEC-10", "SEC-11", "NEG-18")
def test_the_purposes_of_metering_are_exact_and_the_general_one_does_not_exist() -> None:
    """Manifests for two purposes, source events for one, and each validation for its own."""
    purposes: dict[str, set[str]] = {}
    for one in OPERATIONS:
        purposes.setdefault(one.name, set()).add(one.purpose)
    assert purposes["readAttemptExecutionManifest"] == {
        "metering_execution_eligibility",
        "metering_gateway_availability",
    }
    assert purposes["readGatewaySourceEvent"] == {"metering_source_event_bootstrap"}
    assert purposes["validateGatewayAvailabilityCurrent"] == {"metering_availability_validation"}
    assert purposes["validateGatewayRouteCurrent"] == {"metering_route_validation"}
    assert "metering_fact_construction" not in {one.purpose for one in OPERATIONS}


@pytest.mark.req("SEC-13")
def test_operations_and_command_processing_read_a_resolution_by_different_operations() -> None:
    """The callers of the one are no callers of the other."""
    by_name = {one.name: one for one in OPERATIONS}
    command = by_name["readFinalizationReconciliationResolutionAppliedByOperation"]
    event = by_name["readFinalizationReconciliationResolutionAppliedForOperations"]
    assert command.purpose != event.purpose
