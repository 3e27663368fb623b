"""Lists over HTTP: every row exactly once, and cursors that fit nowhere else (API-08)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.kit.orbit.callers import SUBSCRIPTIONS, Caller, HttpScene, code_of, done


def pages(caller: Caller, path: str, limit: int, **query: Any) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
    found: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while True:
        page = done(caller.get(path, limit=limit, **query, **cursor))
        found.append(page["items"])
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.req("orbit:API-08", "orbit:T-N23", "F49")
def test_subscriptions_of_one_instant_are_each_listed_once_while_others_are_added(http_scene: HttpScene) -> None:
    """Seven with one time of creation, in pages of two, with a new one between any two pages."""
    caller = http_scene.caller()
    ids = {caller.subscribe(f"s{number}")["subscription_id"] for number in range(7)}
    http_scene.change_guarded("update orbit.event_subscriptions set created_at = '2026-01-05T08:30:00.000001Z'")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for number in range(20):
        page = done(caller.get(SUBSCRIPTIONS, limit=2, **cursor))
        seen += [item["subscription_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        if number < 5:
            _ = caller.subscribe(f"new{number}")
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen)) == 12
    assert set(seen[:7]) == ids


@pytest.mark.req("orbit:API-08", "orbit:T-N23", "F49")
def test_deliveries_are_listed_in_pages_by_sequence_state_and_exhaustion(http_scene: HttpScene) -> None:
    """Each page size gives the same rows in the same order; a last page that is just full has no cursor."""
    caller = http_scene.caller()
    for _ in range(6):
        _ = caller.finish()
    subscription_id = caller.subscribe("a", from_sequence=0, max_attempts=1)["subscription_id"]
    path = f"{SUBSCRIPTIONS}/{subscription_id}"
    leased = http_scene.claim_deliveries(caller, subscription_id, 2)
    http_scene.let_leases_run_out()
    assert len(http_scene.claim_deliveries(caller, subscription_id, 1)) == 1
    for limit, count in ((1, 6), (2, 3), (3, 2), (6, 1), (200, 1)):
        found = pages(caller, f"{path}/deliveries", limit)
        assert len(found) == count
        assert [item["sequence"] for page in found for item in page] == [1, 2, 3, 4, 5, 6]
    states = {item["state"] for item in done(caller.get(f"{path}/deliveries"))["items"]}
    assert states == {"EXPIRED", "LEASED", "PENDING"}
    exhausted = [item for page in pages(caller, f"{path}/exhausted", 1) for item in page]
    assert [item["delivery_id"] for item in exhausted] == leased
    by_state = [item for page in pages(caller, f"{path}/deliveries", 1, state="EXPIRED") for item in page]
    assert by_state == exhausted
    both = done(caller.get(f"{path}/deliveries", state=["PENDING", "LEASED"]))["items"]
    assert [item["sequence"] for item in both] == [3, 4, 5, 6]


@pytest.mark.req("orbit:API-08", "orbit:T-N23", "F49")
def test_a_cursor_of_another_list_filter_owner_or_form_is_refused(http_scene: HttpScene) -> None:
    """Forged, cut, foreign and invented cursors have one answer; a wrong token is told first."""
    caller, other = http_scene.caller(), http_scene.caller()
    for who in (caller, other):
        for number in range(3):
            _ = who.subscribe(f"{who.credential_id[-6:]}-{number}")
    for _ in range(2):
        _ = caller.finish()
    subscription_id = caller.subscribe("a", from_sequence=0)["subscription_id"]
    _ = http_scene.claim_deliveries(caller, subscription_id)
    deliveries = f"{SUBSCRIPTIONS}/{subscription_id}/deliveries"
    cursor = done(caller.get(SUBSCRIPTIONS, limit=1))["next_cursor"]
    of_deliveries = done(caller.get(deliveries, limit=1))["next_cursor"]
    of_filter = done(caller.get(SUBSCRIPTIONS, limit=1, queue="billing"))["next_cursor"]
    flipped = ("B" if cursor[5] == "A" else "A").join((cursor[:5], cursor[6:]))
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    moved = base64.urlsafe_b64encode(data.replace(b"20", b"19")).decode().rstrip("=")
    for forged in (
        flipped, moved, cursor[:-2], cursor + "AAAA", of_deliveries, of_filter, "", "1", "null", "-", "ä", "x" * 600,
        "MjAyNi0wMS0wMQ", base64.urlsafe_b64encode(b"\0" * 16 + b"[[[[").decode(),
    ):  # fmt: skip
        answer = caller.get(SUBSCRIPTIONS, cursor=forged)
        assert (answer.status_code, code_of(answer)) == (400, "INVALID_CURSOR"), forged
    assert code_of(other.get(SUBSCRIPTIONS, cursor=cursor)) == "INVALID_CURSOR"
    assert code_of(caller.get(deliveries, cursor=of_deliveries, state="LEASED")) == "INVALID_CURSOR"
    assert code_of(caller.get(f"{SUBSCRIPTIONS}/{subscription_id}/exhausted", cursor=of_deliveries)) == "INVALID_CURSOR"
    stranger = Caller(http_scene.client, "orbit_" + "x" * 43)
    assert code_of(stranger.get(SUBSCRIPTIONS, cursor=cursor)) == "UNAUTHENTICATED"
    assert code_of(other.get(deliveries, cursor=of_deliveries)) == "SUBSCRIPTION_NOT_FOUND"
    assert done(caller.get(SUBSCRIPTIONS, cursor=cursor))["items"]


@pytest.mark.req("orbit:API-08", "orbit:API-04", "orbit:T-N23")
@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=", "limit"),
        ("limit=%D9%A1", "limit"),
        ("limit=1&limit=2", "limit"),
        ("status=active", "status"),
        ("status=ACTIVE&status=PAUSED", "status"),
        ("queue=", "queue"),
        ("queue=%00", "queue"),
        ("queue=%FF", "?"),
        ("order=desc", "?"),
        ("&".join(f"p{number}=1" for number in range(30)), "?"),
    ],
)
def test_a_query_is_read_as_strictly_as_a_body(one_scene: HttpScene, query: str, pointer: str) -> None:
    """Unknown, repeated, malformed and out of range are told apart from each other, never guessed."""
    answer = one_scene.caller().get(f"{SUBSCRIPTIONS}?{query}")
    assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_FAILED")
    assert answer.json()["errors"][0]["pointer"] == pointer
