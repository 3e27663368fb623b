"""`quarantine_acknowledge_v1`: an operator has seen it, once, on record; the delivery stays where it is."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.kit import builders
from tests.kit.builders import BILLING
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel, refused


def _acknowledge(kernel: Kernel, event_id: UUID, case_id: str | None = "case-1", actor: str | None = "ann") -> None:
    kernel.run("select seapost.quarantine_acknowledge_v1(%s, %s, %s, %s)", event_id, BILLING, case_id, actor)


@pytest.fixture
def event_id(kernel: Kernel) -> UUID:
    """Give an event that is in quarantine."""
    (identity,) = kernel.append_new()
    kernel.quarantine(kernel.claim_one())
    return identity


@pytest.mark.req("REF-08", "REF-14", "STO-11", "RTY-06")
def test_acknowledging_links_a_case_and_is_audited(kernel: Kernel, clock: Clock, event_id: UUID) -> None:
    """Time and case are set and recorded with the actor; the status of the delivery does not change."""
    before = kernel.count("outbox_delivery_attempt_finishes")
    _acknowledge(kernel, event_id)
    assert kernel.row("select acknowledged_at, case_id from seapost.outbox_quarantine") == (clock.now, "case-1")
    assert (kernel.status(event_id), kernel.published_at(event_id)) == ("quarantined", None)
    assert kernel.count("outbox_delivery_attempt_finishes") == before
    assert kernel.row(
        "select actor, action, subject_ref, occurred_at from seapost.audit_records order by audit_id desc limit 1"
    ) == ("ann", "quarantine.acknowledge", f"{event_id}/{BILLING}", clock.now)


@pytest.mark.req("REF-08")
def test_a_case_is_optional_and_nothing_is_set_twice(kernel: Kernel, event_id: UUID) -> None:
    """The second acknowledgement is refused, even to add a case, and leaves no audit record."""
    _acknowledge(kernel, event_id, case_id=None)
    records = kernel.count("audit_records")
    with refused("SP020", "once acknowledged"):
        _acknowledge(kernel, event_id)
    assert kernel.row("select case_id from seapost.outbox_quarantine") == (None,)
    assert kernel.count("audit_records") == records


@pytest.mark.req("REF-08")
def test_only_a_quarantined_delivery_can_be_acknowledged(kernel: Kernel) -> None:
    """A pending delivery, and one that does not exist, is no quarantine."""
    (pending,) = kernel.append_new()
    for event_id in (pending, builders.new_event_id()):
        with refused("SP022", str(event_id)):
            _acknowledge(kernel, event_id)


@pytest.mark.req("REF-14")
@pytest.mark.parametrize(
    ("case_id", "actor"), [("c", None), ("c", ""), ("c", "a" * 201), ("", "ann"), ("c" * 201, "ann")]
)
def test_actor_and_case_are_bounded(kernel: Kernel, event_id: UUID, case_id: str, actor: str | None) -> None:
    """Nobody acknowledges without a name."""
    with refused("SP013"):
        _acknowledge(kernel, event_id, case_id=case_id, actor=actor)
    assert kernel.row("select acknowledged_at from seapost.outbox_quarantine") == (None,)
