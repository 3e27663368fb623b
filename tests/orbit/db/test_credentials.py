"""What operators make, seen in the database: bootstrap, credentials and their ends, ids and times (OPS-01, OPS-04)."""

from __future__ import annotations

import hashlib
import re
import time
from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest

from orbit.access.token import new_token
from orbit.model.states import Action
from tests.kit.orbit.scene import Credential, Scene

PREFIXES = ("ns", "app", "cred", "q", "task", "att", "permit", "evt", "rcpt", "audit", "sub", "dlv", "conn", "req")
IDENTIFIER = re.compile(r"([a-z]+)_([0-9a-f]{12})7[0-9a-f]{3}[89ab][0-9a-f]{15}")


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _rotate(scene: Scene, credential: Credential, grace_seconds: int = 0) -> dict[str, object]:
    return scene.body(
        "select orbit.credential_rotate_v1(%s, %s, %s::integer)",
        credential.credential_id,
        _sha256(new_token()),
        grace_seconds,
    )


def _check(scene: Scene, credential: Credential, action: str = "tasks:read") -> str | None:
    """The SQLSTATE that the credential meets, None when it is let through."""
    try:
        scene.rows("select orbit.access_check_v1(%s, %s)", credential.sha256, action)
    except psycopg.Error as error:
        return error.sqlstate
    return None


@pytest.mark.req("orbit:GEN-07")
@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_identifier_is_its_prefix_and_a_uuid_of_version_7(orbit_scene: Scene, prefix: str) -> None:
    """32 lower-case digits with version, variant and the time of its making in front; a thousand of them differ."""
    rows = orbit_scene.rows("select orbit.id_new(%s) from generate_series(1, 1000)", prefix)
    found = {row[0] for row in rows}
    assert len(found) == 1000
    for identifier in found:
        match = IDENTIFIER.fullmatch(identifier)
        assert match is not None
        assert match[1] == prefix
        assert abs(int(match[2], 16) / 1000 - time.time()) < 60


@pytest.mark.req("orbit:GEN-08")
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_a_time_is_written_in_utc_with_six_digits_whatever_the_session_prefers(orbit_scene: Scene, zone: str) -> None:
    """RFC 3339 with Z, also on the second and before 1970."""
    orbit_scene.run("select set_config('TimeZone', %s, false)", zone)
    moments = {
        datetime(2026, 1, 5, 8, 30, tzinfo=UTC): "2026-01-05T08:30:00.000000Z",
        datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC): "1969-12-31T23:59:59.000001Z",
        datetime(2026, 7, 1, 1, 0, tzinfo=timezone(timedelta(hours=2))): "2026-06-30T23:00:00.000000Z",
    }
    for moment, text in moments.items():
        assert orbit_scene.value("select orbit.time_text(%s)", moment) == text


@pytest.mark.req("orbit:OPS-01", "orbit:AUT-08", "orbit:T-E11", "orbit:JRN-16")
def test_bootstrap_again_makes_what_is_missing_and_one_more_credential(orbit_scene: Scene) -> None:
    """Namespace, application, stream row and queue stay what they are; every credential of before keeps its row."""
    credentials = "select * from orbit.credentials where credential_id = any(%s)"
    known = [row[0] for row in orbit_scene.rows("select credential_id::text from orbit.credentials")]
    before = orbit_scene.rows(credentials, known)
    body = orbit_scene.body(
        "select orbit.access_bootstrap_v1(%s, 'shop', '{orders,returns,orders}', 'c', %s, '{tasks:read}')",
        orbit_scene.namespace,
        _sha256(new_token()),
    )
    assert list(body) == ["namespace_id", "application_id", "queues", "credential_id", "actions"]
    assert (body["namespace_id"], body["application_id"]) == (orbit_scene.namespace_id, orbit_scene.application_id)
    assert [queue["name"] for queue in body["queues"]] == ["orders", "returns"]
    assert body["queues"][0]["queue_id"] == orbit_scene.queue_id
    assert orbit_scene.rows(credentials, known) == before
    assert orbit_scene.value("select count(*) from orbit.credentials") == len(known) + 1
    assert orbit_scene.value("select count(*) from orbit.event_stream_locks") == 1


@pytest.mark.req("orbit:AUT-06", "orbit:AUT-01")
def test_each_action_opens_its_own_door_only(orbit_scene: Scene) -> None:
    """No action implies another, in any direction."""
    for granted in Action:
        credential = orbit_scene.issue("one", actions=[granted])
        allowed = {action for action in Action if _check(orbit_scene, credential, action) is None}
        assert allowed == {granted}


@pytest.mark.req("orbit:AUT-11", "orbit:AUT-02")
def test_the_checks_come_in_their_order(orbit_scene: Scene) -> None:
    """Token, namespace, application, action: the first that fails answers, whatever else is wrong."""
    credential = orbit_scene.issue("ordered", actions=["tasks:read"])
    wrong = "events:read"
    assert _check(orbit_scene, credential, wrong) == "OB004"
    orbit_scene.run("update orbit.applications set enabled = false")
    assert _check(orbit_scene, credential, wrong) == "OB003"
    orbit_scene.run("update orbit.namespaces set enabled = false")
    assert _check(orbit_scene, credential, wrong) == "OB002"
    orbit_scene.run("update orbit.credentials set expires_at = clock_timestamp()")
    assert _check(orbit_scene, credential, wrong) == "OB001"
    with pytest.raises(psycopg.Error) as caught:
        orbit_scene.rows("select orbit.access_check_v1(null, 'tasks:read')")
    assert caught.value.sqlstate == "OB001"


@pytest.mark.req("orbit:OPS-04", "orbit:AUT-09", "orbit:TX-22")
def test_a_rotation_keeps_the_rights_and_the_length_of_life(orbit_scene: Scene) -> None:
    """The new one has the same actions, scope and span; the old one ends after the grace, never later than before."""
    old = orbit_scene.issue("rotated", actions=["tasks:read"], queues=["orders"], expires_in_seconds=3600)
    body = _rotate(orbit_scene, old, grace_seconds=60)
    assert (body["actions"], body["all_queues"], body["rotated_from"]) == (["tasks:read"], False, old.credential_id)
    left, span = orbit_scene.row(
        "select (select extract(epoch from expires_at - clock_timestamp())::float8 from orbit.credentials"
        " where credential_id = %s), (select extract(epoch from expires_at - created_at)::float8 from orbit.credentials"
        " where credential_id = %s)",
        old.credential_id,
        body["credential_id"],
    )
    assert 30 < left <= 60
    assert span == pytest.approx(3600, abs=5)
    assert _check(orbit_scene, old) is None
    short = orbit_scene.issue("short", expires_in_seconds=10)
    _ = _rotate(orbit_scene, short, grace_seconds=3600)
    ends = (
        "select expires_at <= clock_timestamp() + interval '10 seconds' from orbit.credentials where credential_id = %s"
    )
    assert orbit_scene.value(ends, short.credential_id)


@pytest.mark.req("orbit:OPS-04")
@pytest.mark.parametrize("how", ["rotated", "revoked", "ended"])
def test_a_credential_that_is_over_is_not_brought_back_by_a_rotation(orbit_scene: Scene, how: str) -> None:
    """Rotating what was rotated, revoked or has ended would give its rights a new life."""
    credential = orbit_scene.issue("over")
    if how == "rotated":
        _ = _rotate(orbit_scene, credential, grace_seconds=60)
    elif how == "revoked":
        orbit_scene.rows("select orbit.credential_revoke_v1(%s)", credential.credential_id)
    else:
        orbit_scene.run("update orbit.credentials set expires_at = clock_timestamp() where name = 'over'")
    with pytest.raises(psycopg.Error) as caught:
        _ = _rotate(orbit_scene, credential)
    assert caught.value.sqlstate == "OB026"


@pytest.mark.req("orbit:AUD-07", "orbit:AUD-09", "orbit:AUT-14")
def test_issue_rotation_and_revocation_are_audited_without_a_digest(orbit_scene: Scene) -> None:
    """One row each, with actions and scope; a second revocation writes none."""
    credential = orbit_scene.issue("audited", actions=["tasks:read"])
    made = _rotate(orbit_scene, credential, grace_seconds=60)
    for _ in range(2):
        orbit_scene.rows("select orbit.credential_revoke_v1(%s)", credential.credential_id)
    rows = orbit_scene.rows(
        "select action::text, resource_type::text, detail_json from orbit.audit_log where resource_id = any(%s)"
        " order by created_at",
        [credential.credential_id, made["credential_id"]],
    )
    assert [row[:2] for row in rows] == [
        ("credential.issued", "credential"),
        ("credential.rotated", "credential"),
        ("credential.revoked", "credential"),
    ]
    digest = credential.sha256.hex()
    assert all("all_queues" in row[2] and digest not in row[2] and credential.token not in row[2] for row in rows)
