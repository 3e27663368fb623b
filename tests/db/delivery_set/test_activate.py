"""`delivery_set_activate_v1`: one active definition, chosen by version and digest, forward only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH
from tests.kit.kernel import Kernel, refused


def _statuses(kernel: Kernel) -> dict[str, str]:
    return dict(kernel.rows("select delivery_set_version, status from seapost.delivery_set_versions"))


@pytest.mark.req("SET-17", "SET-31", "APP-01", "REF-14")
def test_activation_retires_the_former_version_and_is_audited(kernel: Kernel) -> None:
    """Exactly one version is active; the former one is retired in the same transaction; the digest is on record."""
    candidate = builders.definition("2", {PLACED: [SEARCH]})
    kernel.register(candidate)
    assert _statuses(kernel) == {"1": "active", "2": "registered"}
    kernel.activate("2", candidate, actor="ann")
    assert _statuses(kernel) == {"1": "retired", "2": "active"}
    assert kernel.row(
        "select actor, subject_ref, request_digest from seapost.audit_records"
        " where action = 'delivery_set.activate' order by audit_id desc limit 1"
    ) == ("ann", "2", builders.digest(candidate).hex())


@pytest.mark.req("SET-17")
def test_activating_the_active_version_again_changes_nothing(kernel: Kernel) -> None:
    """A repeated activation is harmless: same time of activation, no second audit record."""
    query = "select activated_at, (select count(*) from seapost.audit_records) from seapost.delivery_set_versions"
    before = kernel.row(query)
    kernel.activate("1", builders.definition())
    assert kernel.row(query) == before


@pytest.mark.req("SET-17", "SET-14")
def test_a_version_is_activated_only_with_its_own_digest(kernel: Kernel) -> None:
    """An unknown version, and a known one with another digest or none, is refused; the active one stays active."""
    kernel.register(builders.definition("2"))
    for version, candidate in (("3", builders.definition("3")), ("2", builders.definition("1"))):
        with refused("SP008", version):
            kernel.activate(version, candidate)
    with refused("SP008"):
        kernel.run("select seapost.delivery_set_activate_v1('2', null, 'ann')")
    assert _statuses(kernel)["1"] == "active"


@pytest.mark.req("SET-17", "SET-31")
def test_a_retired_version_stays_retired(kernel: Kernel) -> None:
    """Status moves forward only: the same routes come back under a new version."""
    kernel.route("2", {PLACED: [BILLING]})
    with refused("SP021"):
        kernel.activate("1", builders.definition())
    kernel.route("3")
    assert _statuses(kernel) == {"1": "retired", "2": "retired", "3": "active"}


@pytest.mark.req("SET-31", "SET-19", "SET-18")
def test_old_events_converge_to_their_own_definition(kernel: Kernel) -> None:
    """After a switch an old delivery still resolves the member of its own quad; a new event freezes only the new
    one.
    """
    kernel.append_new(PLACED)
    kernel.route("2", {PLACED: [BILLING]})
    kernel.append_new(PLACED)
    old, new = kernel.claim(BILLING)
    assert (old.member.definition.version, new.member.definition.version) == ("1", "2")
    assert old.member.definition.digest == builders.digest(builders.definition()).hex()
    assert kernel.acknowledge(old, new) == []


@pytest.mark.req("SET-31", "SET-32", "SET-20", "SET-11", "DLV-11")
def test_a_receipt_of_another_projection_version_settles_neither_event(kernel: Kernel) -> None:
    """Old and new event each accept only the projection that their own frozen member names."""
    for version in ("1", "2"):
        line = builders.member(
            PLACED,
            SEARCH,
            projectionTarget={"state": "required", "projectionName": "orders", "projectionVersion": version},
        )
        candidate = builders.canonical(builders.definition_document(f"orders-{version}", [line]))
        kernel.register(candidate)
        kernel.activate(f"orders-{version}", candidate)
        kernel.append_new(PLACED)
    old, new = kernel.claim(SEARCH)
    for claim, wrong in ((old, "2"), (new, "1")):
        receipt = builders.receipt_for(claim, projectionVersion=wrong)
        unprojected = builders.receipt_for(replace(claim, member=replace(claim.member, projection=None)))
        refusal = (claim.fence.event_id, claim.fence.attempt_id, "invalid")
        assert kernel.acknowledge(claim, receipts=[receipt]) == [refusal]
        assert kernel.acknowledge(claim, receipts=[unprojected]) == [refusal]
        assert kernel.status(claim.fence.event_id, SEARCH) == "leased"
    assert kernel.acknowledge(old, new) == []


@pytest.mark.req("REF-14")
def test_activation_needs_an_actor(kernel: Kernel) -> None:
    """Nobody activates a definition without a name in the audit record."""
    with refused("SP013", "p_actor"):
        kernel.activate("1", builders.definition(), actor="")
