"""The release definition: thirteen events, fourteen members, four consumers (SET-21 to SET-29, annex B)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oceanway.cli import installing
from oceanway.contracts.events import EVENTS
from oceanway.contracts.receipts.registry import RECEIPTS
from oceanway.contracts.release import CONSUMERS, PROJECTION, application, check_definition
from seapost.contracts.delivery_set import (
    DeliverySetDefinition,
    DeliverySetMember,
    NoProjectionTarget,
    RequiredProjectionTarget,
    derive,
)
from seapost.contracts.events import Event
from seapost.model.errors import ContractError
from seapost.outbox.application import Application, Destination

OPERATIONS = ("core_operations", "operations_projector", "OperationsProjectionAppliedReceipt", "1")
METERING = (
    "metering_input_processor",
    "metering_input_processor_consumer",
    "MeteringInputProcessorConsumerReceipt",
    "1",
)
COORDINATOR = (
    "billing_finalization_coordinator",
    "billing_finalization_coordinator_consumer",
    "BillingFinalizationCoordinatorConsumerReceipt",
    "1",
)
CATCH_UP = (
    "billing_settlement_catch_up",
    "billing_settlement_catch_up_consumer",
    "BillingSettlementCatchUpConsumerReceipt",
    "1",
)
MINIMAL = [
    ("billing.case-resolution.applied@1", "1", OPERATIONS),
    ("billing.finalization-reconciliation-resolution.applied@1", "1", COORDINATOR),
    ("billing.finalization-reconciliation-resolution.applied@1", "1", OPERATIONS),
    ("billing.finalization-reconciliation.case-requested@1", "1", OPERATIONS),
    ("billing.finalization.committed@1", "1", OPERATIONS),
    ("billing.late-settlement-command-result.committed@1", "1", OPERATIONS),
    ("billing.late-settlement-exposure.case-requested@1", "1", OPERATIONS),
    ("billing.settlement-transition.committed@1", "1", OPERATIONS),
    ("execution.attempt-eligibility.finalized@1", "1", METERING),
    ("execution.run-finalization.closed@1", "1", COORDINATOR),
    ("gateway.evidence-availability.current-changed@1", "1", METERING),
    ("metering.settlement-input.current-changed@1", "1", CATCH_UP),
    ("run.created@2.0", "2.0", OPERATIONS),
    ("wallet.reserved@2.0", "2.0", OPERATIONS),
]
"""Annex B.1, line by line."""


def definition(version: str = "1", projection: tuple[str, str] = PROJECTION) -> DeliverySetDefinition:
    """Build the minimal definition."""
    return application(projection).definition(version)


@pytest.mark.req("SET-21", "SET-22", "SET-23", "SET-24", "SET-25", "SET-26", "SET-27", "SET-28", "SET-29", "GEN-12")
def test_the_definition_is_annex_b() -> None:
    """The thirteen exact pairs, the fourteen members with receipt and target, all mandatory, counted and sorted."""
    made = definition()
    assert (made.applicable_event_count, made.member_count) == (13, 14)
    members = [
        (
            member.event_type,
            member.event_schema_version,
            (
                member.destination,
                member.consumer_name,
                member.expected_receipt_type,
                member.expected_receipt_schema_version,
            ),
        )
        for member in made.members
    ]
    assert members == MINIMAL
    assert all(member.mandatory for member in made.members)
    pairs = {(event.event_type, event.event_schema_version) for event in made.applicable_events}
    assert pairs == {(kind, version) for kind, version, _ in MINIMAL}
    for member in made.members:
        target = member.projection_target
        if member.destination == "core_operations":
            assert isinstance(target, RequiredProjectionTarget)
            assert (target.projection_name, target.projection_version) == PROJECTION
        else:
            assert isinstance(target, NoProjectionTarget)
    check_definition(made)


@pytest.mark.req("SET-29", "SET-12")
def test_the_digest_covers_members_receipts_and_the_projection_target() -> None:
    """Another projection version gives another digest, and a changed member does not verify."""
    assert definition().quad().digest == definition().quad().digest
    assert definition(projection=("operations", "2")).quad().digest != definition().quad().digest
    fields: Any = definition().to_json()
    fields["members"][0]["mandatory"] = False
    with pytest.raises(ContractError):
        _ = DeliverySetDefinition.decode(fields, receipts=RECEIPTS)


@pytest.mark.req("SET-22", "SET-39")
def test_events_are_exact_literals() -> None:
    """Each payload class has the literal type, its own version, and the producer of its type."""
    assert {(event.event_type, event.event_schema_version) for event in EVENTS} == {
        (kind, version) for kind, version, _ in MINIMAL
    }
    producers = {event.event_type: event.event_producer for event in EVENTS}
    assert {kind.split(".")[0] for kind, producer in producers.items() if producer == "core"} == {"run", "wallet"}
    for kind, producer in producers.items():
        assert producer == "core" or kind.startswith(f"{producer}.")
    for event in EVENTS:
        assert application().events.get(event.event_type, event.event_schema_version) is event


@pytest.mark.req("GEN-12", "DLV-02", "SET-10")
def test_there_are_exactly_four_consumers() -> None:
    """Each destination has one consumer and one receipt, and no two share any."""
    expected = {row[0]: (row[1], row[2]) for row in (OPERATIONS, METERING, COORDINATOR, CATCH_UP)}
    assert {name: (one.name, one.receipt) for name, one in CONSUMERS.items()} == expected
    assert {one.receipt for one in CONSUMERS.values()} == {entry.name for entry in RECEIPTS}


def _changed(destination: str, changes: dict[str, object]) -> DeliverySetDefinition:
    """The definition with one member of this destination changed, derived anew and so correctly digested."""
    members = list(definition().members)
    index = next(i for i, member in enumerate(members) if member.destination == destination)
    fields = dict(members[index]) | changes
    members[index] = DeliverySetMember(**fields)  # pyright: ignore[reportArgumentType]
    return derive("1", members, receipts=None)


@pytest.mark.req("SET-09", "SET-10", "DLV-02", "NEG-05")
@pytest.mark.parametrize(
    ("destination", "changes"),
    [
        ("core_operations", {"expected_receipt_type": "MeteringInputProcessorConsumerReceipt"}),
        ("core_operations", {"expected_receipt_type": "ConsumerReceipt"}),
        ("core_operations", {"expected_receipt_schema_version": "2"}),
        ("core_operations", {"projection_target": NoProjectionTarget()}),
        ("core_operations", {"consumer_name": "billing_settlement_catch_up_consumer"}),
        ("core_operations", {"destination": "core_archive"}),
        ("metering_input_processor", {"expected_receipt_type": "OperationsProjectionAppliedReceipt"}),
        ("metering_input_processor", {"expected_receipt_type": "BillingSettlementCatchUpConsumerReceipt"}),
        (
            "metering_input_processor",
            {"projection_target": RequiredProjectionTarget(projection_name="operations", projection_version="1")},
        ),
        ("billing_finalization_coordinator", {"consumer_name": "operations_projector"}),
        ("billing_settlement_catch_up", {"expected_receipt_type": "OperationsProjectionAppliedReceipt"}),
        (
            "billing_settlement_catch_up",
            {"projection_target": RequiredProjectionTarget(projection_name="operations", projection_version="1")},
        ),
    ],
)
def test_a_member_that_is_not_its_destinations_own_is_refused(destination: str, changes: dict[str, object]) -> None:
    """Destination, consumer, receipt and target belong together; any other combination is no OceanWay definition."""
    with pytest.raises(ContractError) as refused:
        check_definition(_changed(destination, changes))
    assert refused.value.pointer.startswith("/members/")


@pytest.mark.req("SET-09", "SET-10")
def test_a_release_that_sends_an_event_elsewhere_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The definition is judged before the first database is touched."""

    class Elsewhere(Event, type="core.elsewhere.sent@1", producer="core", aggregate="elsewhere"):
        nothing: str

    astray = Application("astray")
    astray.route(Elsewhere, Destination("elsewhere"))
    monkeypatch.setattr(installing, "release", lambda: astray)
    steps = installing.prepare(tmp_path / "oceanway.toml", server=None, prefix="astray")
    with pytest.raises(ContractError, match="No such destination"):
        _ = list(steps)
