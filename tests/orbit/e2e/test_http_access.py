"""Who may do what over HTTP: tokens, actions, scopes and owners (section 6)."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import httpx
import pytest

from tests.kit.orbit.callers import (
    EVENT_ACTIONS,
    NAMESPACE,
    SUBSCRIPTIONS,
    TASK_ACTIONS,
    Caller,
    HttpScene,
    code_of,
    created,
    done,
)

UNKNOWN = f"{SUBSCRIPTIONS}/sub_{'0' * 32}"
CHANGE = {"expected_revision": 1}
RETRY = {"expected_revision": 1, "reason": "r", "additional_attempts": 1}
OPERATIONS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("events:manage", SUBSCRIPTIONS, {"name": "probe", "queue": "billing", "from_sequence": 9999}),
    ("events:manage", f"{UNKNOWN}/pause", CHANGE),
    ("events:manage", f"{UNKNOWN}/resume", CHANGE),
    ("events:manage", f"{UNKNOWN}/deliveries/dlv_0/retry", RETRY),
    ("events:read", SUBSCRIPTIONS, None),
    ("events:read", UNKNOWN, None),
    ("events:read", f"{UNKNOWN}/deliveries", None),
    ("events:read", f"{UNKNOWN}/exhausted", None),
    ("events:read", f"{UNKNOWN}/deliveries/dlv_0", None),
]
SUBSETS = list(chain.from_iterable(combinations(EVENT_ACTIONS, size) for size in range(1, len(EVENT_ACTIONS) + 1)))


def ask(caller: Caller, path: str, body: dict[str, Any] | None) -> httpx.Response:
    """Send one operation."""
    return caller.get(path) if body is None else caller.post(path, body)


def refused(answer: httpx.Response) -> str | None:
    """The code of a problem, or None."""
    return code_of(answer) if answer.is_error else None


@pytest.mark.req("orbit:T-N01", "orbit:AUT-01", "orbit:AUT-04", "orbit:AUT-05", "orbit:AUT-06", "orbit:AUT-10")
@pytest.mark.parametrize("actions", [*SUBSETS, TASK_ACTIONS], ids="+".join)
def test_each_operation_needs_its_own_action_and_no_other_implies_it(
    one_scene: HttpScene, actions: tuple[str, ...]
) -> None:
    """Every subset of the three actions, and all task actions: allowed is what AUT-10 names."""
    caller = one_scene.caller(*actions)
    for action, path, body in OPERATIONS:
        assert (refused(ask(caller, path, body)) == "ACTION_NOT_ALLOWED") == (action not in actions), path


@pytest.mark.req("orbit:T-N02", "orbit:AUT-02", "orbit:AUT-11", "orbit:AUT-14", "orbit:API-03", "orbit:API-12")
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Basic abc",
        "Bearer orbit_short",
        "Bearer orbit_" + "x" * 43,
        "Bearer orbit_" + "x" * 44,
        "orbit_" + "x" * 43,
    ],
)
def test_a_missing_or_wrong_token_is_unauthenticated_everywhere(
    one_scene: HttpScene, authorization: str | None
) -> None:
    """Whatever is wrong with it, the answer is the same and names the scheme."""
    headers = {} if authorization is None else {"authorization": authorization}
    answer = one_scene.client.get(SUBSCRIPTIONS, headers=headers)
    assert (answer.status_code, code_of(answer)) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.req("orbit:T-N02", "orbit:AUT-02", "orbit:AUT-11")
def test_token_namespace_application_action_and_queue_are_checked_in_this_order(http_scene: HttpScene) -> None:
    """With everything wrong at once, each fault that is mended uncovers the next."""
    caller = http_scene.caller("events:manage")
    path = f"{SUBSCRIPTIONS}/{caller.subscribe('a')['subscription_id']}"
    change = http_scene.connection.execute
    place = (caller.credential_id,)
    _ = change(
        "update orbit.credentials set queue_ids = '{}', actions = '{tasks:read}' where credential_id = %s", place
    )
    _ = change("update orbit.applications set enabled = false")
    _ = change("update orbit.namespaces set enabled = false")
    _ = change("update orbit.credentials set expires_at = clock_timestamp() where credential_id = %s", place)
    mending = [
        ("UNAUTHENTICATED", "update orbit.credentials set expires_at = null"),
        ("NAMESPACE_DISABLED", "update orbit.namespaces set enabled = true"),
        ("APPLICATION_DISABLED", "update orbit.applications set enabled = true"),
        ("ACTION_NOT_ALLOWED", "update orbit.credentials set actions = '{events:manage}'"),
        ("QUEUE_NOT_ALLOWED", "update orbit.credentials set all_queues = true"),
    ]
    for code, statement in mending:
        assert code_of(caller.post(f"{path}/pause", CHANGE)) == code
        _ = change(statement.encode())
    assert done(caller.post(f"{path}/pause", CHANGE))["status"] == "PAUSED"


@pytest.mark.req("orbit:T-N02", "orbit:AUT-12")
def test_a_revoked_token_is_refused_from_the_next_request_on(one_scene: HttpScene) -> None:
    """Nothing is remembered of an earlier check."""
    caller = one_scene.caller()
    assert caller.get(SUBSCRIPTIONS).status_code == 200
    _ = one_scene.connection.execute("select orbit.credential_revoke_v1(%s)", (caller.credential_id,))
    assert code_of(caller.get(SUBSCRIPTIONS)) == "UNAUTHENTICATED"


@pytest.mark.req("orbit:T-N03", "orbit:AUT-03", "orbit:API-09")
def test_another_credential_of_the_namespace_sees_and_changes_nothing(http_scene: HttpScene) -> None:
    """With all actions and the right ids, each operation finds nothing, and nothing has changed."""
    owner, other = http_scene.caller(), http_scene.caller(all_queues=True)
    _ = owner.finish()
    subscription = owner.subscribe("a", from_sequence=0, max_attempts=1)
    path = f"{SUBSCRIPTIONS}/{subscription['subscription_id']}"
    delivery = http_scene.exhausted_delivery(owner, subscription["subscription_id"])
    delivery_path = f"{path}/deliveries/{delivery['delivery_id']}"
    before = (owner.get(path).text, owner.get(delivery_path).text)
    retry = {**RETRY, "expected_revision": delivery["revision"]}
    for suffix, body in [
        ("", None),
        ("/deliveries", None),
        ("/exhausted", None),
        (f"/deliveries/{delivery['delivery_id']}", None),
        ("/pause", CHANGE),
        ("/resume", CHANGE),
        (f"/deliveries/{delivery['delivery_id']}/retry", retry),
    ]:
        answer = ask(other, path + suffix, body)
        assert (answer.status_code, code_of(answer)) == (404, "SUBSCRIPTION_NOT_FOUND"), suffix
    assert done(other.get(SUBSCRIPTIONS))["items"] == []
    assert (owner.get(path).text, owner.get(delivery_path).text) == before


@pytest.mark.req("orbit:T-N04", "orbit:AUT-09")
def test_a_rotated_credential_does_not_see_its_predecessors_subscriptions(http_scene: HttpScene) -> None:
    """A new row is a new credential, with the same actions and scope."""
    old = http_scene.caller()
    path = f"{SUBSCRIPTIONS}/{old.subscribe('a')['subscription_id']}"
    new = Caller(http_scene.client, "orbit_" + "n" * 43)
    _ = http_scene.connection.execute("select orbit.credential_rotate_v1(%s, %s, 600)", (old.credential_id, new.sha256))
    assert old.get(path).status_code == 200
    assert code_of(new.get(path)) == "SUBSCRIPTION_NOT_FOUND"
    assert done(new.get(SUBSCRIPTIONS))["items"] == []
    assert code_of(new.post(SUBSCRIPTIONS, {"name": "a", "queue": "billing"})) == "SUBSCRIPTION_NAME_CONFLICT"


@pytest.mark.req("orbit:API-09", "orbit:AUT-13", "orbit:SUB-25")
def test_a_list_holds_what_is_owned_and_in_scope(http_scene: HttpScene) -> None:
    """A queue taken out of the scope takes its subscriptions out of the list; names outside it are not told apart."""
    caller = http_scene.caller()
    _ = [caller.subscribe("a"), created(caller.post(SUBSCRIPTIONS, {"name": "b", "queue": "shipping"}))]
    assert [item["name"] for item in done(caller.get(SUBSCRIPTIONS))["items"]] == ["a", "b"]
    assert [item["name"] for item in done(caller.get(SUBSCRIPTIONS, queue="shipping"))["items"]] == ["b"]
    _ = http_scene.connection.execute(
        "update orbit.credentials set queue_ids = array[(select queue_id from orbit.queues where name = 'shipping')]"
        " where credential_id = %s",
        (caller.credential_id,),
    )
    assert [item["name"] for item in done(caller.get(SUBSCRIPTIONS))["items"]] == ["b"]
    for queue in ("billing", "nowhere"):
        assert code_of(caller.post(SUBSCRIPTIONS, {"name": "c", "queue": queue})) == "QUEUE_NOT_ALLOWED"


@pytest.mark.req("orbit:AUT-14", "F87")
@pytest.mark.parametrize("name", ["token", "access_token", "authorization"])
def test_a_token_in_the_address_opens_nothing(one_scene: HttpScene, name: str) -> None:
    """Neither instead of the header nor beside it."""
    caller = one_scene.caller()
    alone = one_scene.client.get(SUBSCRIPTIONS, params={name: caller.token})
    assert code_of(alone) == "UNAUTHENTICATED"
    beside = caller.get(SUBSCRIPTIONS, **{name: caller.token})
    assert code_of(beside) == "VALIDATION_FAILED"
    assert caller.token not in alone.text + beside.text


@pytest.mark.req("orbit:API-03", "orbit:TSK-16")
def test_two_namespaces_share_nothing_but_the_server(http_scene: HttpScene) -> None:
    """The same names exist in both; the credential decides which are meant."""
    http_scene.add_application("other", "shop")
    here, there = http_scene.caller(), http_scene.caller(namespace="other")
    assert here.subscribe("a")["namespace_id"] != there.subscribe("a")["namespace_id"]
    task = here.submit()
    assert code_of(there.get(f"/v1/tasks/{task['task_id']}")) == "TASK_NOT_FOUND"
    http_scene.add_application(NAMESPACE, "second")
    neighbour = http_scene.caller(application="second")
    assert code_of(neighbour.get(f"/v1/tasks/{task['task_id']}")) == "TASK_NOT_FOUND"
