"""The idempotency identity: its check value, its form, and that no two lists of parts share one (IDM-05, T-P07)."""

from __future__ import annotations

import hashlib
from typing import Final

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.orbit.scene import Scene

CHECKED: Final = ("ns_1", "cred_1", "event_subscription.create", "event-subscriptions", "k-1")
CHECK_VALUE: Final = "1b81b0af9cdd16fe80ae8bc01c6925c3b44825a71eff09ff584ce79b9aaca4cf"

PARTS: Final = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40), min_size=1, max_size=6
)


def _identity(scene: Scene, parts: list[str]) -> str:
    return scene.value("select orbit.idempotency_identity(variadic %s::text[])", parts)


@pytest.mark.req("orbit:IDM-05", "orbit:IDM-03")
def test_the_identity_of_the_specification_has_its_check_value(orbit_scene: Scene) -> None:
    """Five parts after the tag, each with its length in bytes."""
    assert _identity(orbit_scene, list(CHECKED)) == CHECK_VALUE


@pytest.mark.req("orbit:IDM-03", "orbit:IDM-05", "orbit:T-P07")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=PARTS, other=PARTS)
def test_an_identity_has_64_characters_and_belongs_to_one_list_of_parts(
    orbit_scene: Scene, parts: list[str], other: list[str]
) -> None:
    """It is the SHA-256 over lengths and texts; parts that join to the same text are still told apart."""
    joined = b"".join(
        len(text).to_bytes(4, "big") + text for text in (part.encode() for part in ["orbit.idem.v1", *parts])
    )
    identity = _identity(orbit_scene, parts)
    assert identity == hashlib.sha256(joined).hexdigest()
    if other != parts:
        assert _identity(orbit_scene, other) != identity
    if len(parts[0]) > 1:
        assert _identity(orbit_scene, [parts[0][:1], parts[0][1:], *parts[1:]]) != identity


@pytest.mark.req("orbit:IDM-03", "orbit:IDM-04", "orbit:T-P07")
def test_the_length_of_a_key_never_shortens_its_identity(orbit_scene: Scene) -> None:
    """A key of 128 characters that differs in the last one is another identity, stored whole."""
    keys = ["k" * 127 + last for last in "ab"]
    subscriptions = [orbit_scene.subscribe(f"s-{key[-1]}", key=key) for key in keys]
    assert len(set(subscriptions)) == 2
    lengths = orbit_scene.rows("select distinct length(identity_sha256) from orbit.idempotency_records")
    assert lengths == [(64,)]


@pytest.mark.req("orbit:IDM-03")
@pytest.mark.parametrize("identity", ["a" * 63, "a" * 65, "A" * 64, "g" * 64])
def test_the_database_takes_no_other_form_of_an_identity(orbit_scene: Scene, identity: str) -> None:
    """Shorter, longer, in capitals or not hexadecimal: refused, never cut to fit."""
    with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.StringDataRightTruncation)):
        orbit_scene.run(
            "insert into orbit.idempotency_records (identity_sha256, namespace_id, credential_id, action,"
            " request_sha256, response_status, response_json)"
            " values (%s, 'ns', 'cred', 'a', repeat('0', 64), 200, '{}')",
            identity,
        )
