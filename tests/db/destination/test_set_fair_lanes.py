"""`destination_set_fair_lanes_v1`: an operational setting, audited, outside every delivery set."""

from __future__ import annotations

import pytest

from tests.kit.builders import BILLING, SEARCH
from tests.kit.kernel import Kernel, refused
from tests.kit.tenants import fair

pytestmark = pytest.mark.req("F23")

SETTINGS = "select destination, fair_lanes, lanes_claimed from seapost.destination_settings order by destination"
AUDIT = "select actor, action, subject_ref from seapost.audit_records where action = 'destination.fair_lanes'"


def test_a_setting_is_shown_and_claims_remember_the_most(kernel: Kernel) -> None:
    """Fewer lanes change what appends fill, never what claims look at."""
    fair(kernel, 64)
    fair(kernel, 2, destination=SEARCH)
    fair(kernel, 8)
    assert kernel.rows(SETTINGS) == [(BILLING, 8, 64), (SEARCH, 2, 2)]


@pytest.mark.req("REF-14")
def test_only_a_change_is_audited(kernel: Kernel) -> None:
    """The default needs no row, and saying the same again is no change."""
    for lanes in (1, 16, 16, 1, 1):
        fair(kernel, lanes, actor="ann")
    assert kernel.rows(AUDIT + " order by occurred_at, subject_ref desc") == [
        ("ann", "destination.fair_lanes", "billing=16"),
        ("ann", "destination.fair_lanes", "billing=1"),
    ]


def test_a_delivery_set_does_not_notice(kernel: Kernel) -> None:
    """The digest of the active definition stays what it was."""
    digest = "select delivery_set_definition_digest from seapost.delivery_set_versions where status = 'active'"
    before = kernel.value(digest)
    fair(kernel, 64)
    assert kernel.value(digest) == before


@pytest.mark.parametrize(
    ("destination", "lanes", "actor"),
    [
        (BILLING, 0, "ann"),
        (BILLING, 257, "ann"),
        (BILLING, None, "ann"),
        (BILLING, 2, ""),
        (BILLING, 2, None),
        (BILLING, 2, "a" * 201),
        ("nowhere", 2, "ann"),
        (None, 2, "ann"),
    ],
)
def test_arguments_are_bounded(
    shared_lean: Kernel, destination: str | None, lanes: int | None, actor: str | None
) -> None:
    """1 to 256 lanes, a known destination, a named actor."""
    with refused("SP013"):
        shared_lean.run("select seapost.destination_set_fair_lanes_v1(%s, %s, %s)", destination, lanes, actor)
