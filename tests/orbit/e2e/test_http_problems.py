"""What goes wrong over HTTP is a problem of section 20 with the headers it needs (API-04 to API-06, API-12)."""

from __future__ import annotations

import re
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from orbit.model.codes import CODES, ErrorCode
from orbit.wire.problems import Problem
from tests.kit.eventually import eventually_row
from tests.kit.orbit.callers import SUBSCRIPTIONS, HttpScene, code_of

LOCKED = """
create sequence test_tries;
create function test_locked() returns trigger language plpgsql security definer set search_path = public as $$
begin
    perform nextval('test_tries');
    raise exception using errcode = '55P03', message = 'as a lock timeout';
end $$;
create trigger locked before update on orbit.event_subscriptions for each row execute function test_locked()"""
"""What an update meets that waits longer than `lock_timeout`, without the wait; counts the tries."""


@pytest.mark.req("orbit:T-N26", "orbit:API-12", "orbit:API-05", "orbit:ERR-03")
@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v2/tasks", "/v1/event-subscriptions/", "/docs", "/redoc", "/v1/tasks/a/b/c", "/%00"]
)
def test_an_unknown_path_is_a_problem_of_ours(one_scene: HttpScene, path: str) -> None:
    """The framework's own pages and bodies never leave."""
    answer = httpx.get(one_scene.base_url + path)
    assert (answer.status_code, code_of(answer)) == (404, "ROUTE_NOT_FOUND")


@pytest.mark.req("orbit:T-N24", "orbit:T-N26", "orbit:API-02", "orbit:SUB-06", "orbit:SUB-07", "orbit:API-12")
def test_subscriptions_cannot_be_deleted_or_edited_and_deliveries_not_claimed_over_http(http_scene: HttpScene) -> None:
    """The methods are not allowed, and `Allow` names those that are; the paths do not exist."""
    caller = http_scene.caller()
    subscription = f"{SUBSCRIPTIONS}/{caller.subscribe('a')['subscription_id']}"
    before = caller.get(subscription).text
    headers = {"authorization": f"Bearer {caller.token}"}
    for method in ("DELETE", "PATCH", "PUT"):
        answer = http_scene.client.request(method, subscription, headers=headers)
        assert (answer.status_code, code_of(answer)) == (405, "METHOD_NOT_ALLOWED")
        assert answer.headers["allow"] == "GET, HEAD"
    listed = http_scene.client.request("DELETE", SUBSCRIPTIONS, headers=headers)
    assert listed.headers["allow"] == "GET, HEAD, POST"
    for path in ("/claim", "/claims", "/ack", "/deliveries/dlv_1/ack", "/pull", "/rebind"):
        assert code_of(caller.post(subscription + path, {})) == "ROUTE_NOT_FOUND"
    assert caller.get(subscription).text == before


@pytest.mark.req("orbit:T-N26", "orbit:API-04")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/jsonx"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_a_body_that_is_not_plain_json_is_an_unsupported_media_type(
    one_scene: HttpScene, headers: dict[str, str]
) -> None:
    """Its bytes are not looked at."""
    token = {"authorization": f"Bearer {one_scene.caller().token}", "idempotency-key": "k"}
    body = b'{"name":"a","queue":"billing"}'
    answer = one_scene.client.post(SUBSCRIPTIONS, content=body, headers={**token, **headers})
    assert (answer.status_code, code_of(answer)) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.req("orbit:T-N23", "orbit:API-04", "orbit:API-05", "orbit:API-06")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "MALFORMED_REQUEST"),
        (b'{"name":"\xff"}', 400, "MALFORMED_REQUEST"),
        (b"[]", 422, "VALIDATION_FAILED"),
        (b'{"name":"a","name":"b","queue":"billing"}', 422, "VALIDATION_FAILED"),
        (b'{"name":"a","queue":"billing","owner":"me"}', 422, "VALIDATION_FAILED"),
    ],
)
def test_a_wrong_body_is_a_problem_and_changes_nothing(
    one_scene: HttpScene, body: bytes, status: int, code: str
) -> None:
    """The problem has the members of the model, a request id and, for members, where they are wrong."""
    caller = one_scene.caller()
    answer = caller.post(SUBSCRIPTIONS, body)
    assert (answer.status_code, code_of(answer)) == (status, code)
    problem = Problem.model_validate(answer.json())
    assert problem.title == CODES[ErrorCode(code)].title
    assert re.fullmatch("req_[0-9a-f]{32}", problem.request_id)
    assert bool(problem.errors) == (status == 422)
    assert caller.get(SUBSCRIPTIONS).json()["items"] == []


@pytest.mark.req("orbit:API-04", "orbit:T-N23")
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_beyond_its_limit_is_refused_while_it_arrives(http_scene: HttpScene, announced: bool) -> None:
    """64 KiB for subscriptions, 2 MiB for tasks, whether the length is announced or not; the limit itself is taken."""
    caller = http_scene.caller()
    headers = {"authorization": f"Bearer {caller.token}", "content-type": "application/json", "idempotency-key": "k"}
    for path, form, most in [
        (SUBSCRIPTIONS, b'{"name":"a","queue":"billing"%s}', 65_536),
        ("/v1/tasks", b'{"queue":"billing","input":1%s}', 2_097_152),
    ]:
        for size in (most, most + 1, 2 * most):
            body = form % (b" " * (size - len(form) + 2))
            content = body if announced else iter([body[:1000], body[1000:]])
            answer = http_scene.client.post(path, content=content, headers=headers)
            if size == most:
                assert answer.status_code == 201, answer.text
            else:
                assert (answer.status_code, code_of(answer)) == (413, "REQUEST_TOO_LARGE")


@pytest.mark.req("orbit:T-N26", "orbit:LCK-11", "orbit:API-12")
def test_a_locked_database_is_busy_and_says_when_to_come_back(http_scene: HttpScene) -> None:
    """After three lock timeouts the request gives up, and nothing is left of it."""
    caller = http_scene.caller()
    path = f"{SUBSCRIPTIONS}/{caller.subscribe('a')['subscription_id']}"
    _ = http_scene.connection.execute(LOCKED)
    answer = caller.post(f"{path}/pause", {"expected_revision": 1}, key="k")
    assert (answer.status_code, code_of(answer)) == (503, "SERVICE_BUSY")
    assert int(answer.headers["retry-after"]) >= 1
    assert http_scene.connection.execute("select last_value from test_tries").fetchone() == (3,)
    _ = http_scene.connection.execute("drop trigger locked on orbit.event_subscriptions")
    assert caller.post(f"{path}/pause", {"expected_revision": 1}, key="k").json()["status"] == "PAUSED"


@pytest.mark.req("orbit:T-N26", "orbit:API-12")
@pytest.mark.parametrize(
    "request_", [b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n"]
)
def test_what_is_no_http_is_answered_with_a_problem(one_scene: HttpScene, request_: bytes) -> None:
    """Such a request never reaches the application, and still no other body leaves."""
    with socket.create_connection((urlsplit(one_scene.base_url).hostname, urlsplit(one_scene.base_url).port)) as peer:
        peer.sendall(request_)
        head, _, body = b"".join(iter(lambda: peer.recv(65_536), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    assert Problem.model_validate_json(body).code == "MALFORMED_REQUEST"


@pytest.mark.req("orbit:API-12")
def test_a_client_that_leaves_in_the_middle_of_its_body_changes_nothing(http_scene: HttpScene) -> None:
    """The server serves the next one, and the key is unused."""
    caller = http_scene.caller()
    body = b'{"name":"a","queue":"billing"}'
    address = urlsplit(http_scene.base_url)
    head = (
        f"POST {SUBSCRIPTIONS} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {caller.token}\r\nidempotency-key: k\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()
    for sent in (head, head + body[:-1]):
        with socket.create_connection((address.hostname, address.port)) as peer:
            peer.sendall(sent)
    assert caller.get(SUBSCRIPTIONS).json()["items"] == []
    with socket.create_connection((address.hostname, address.port)) as peer:
        peer.sendall(head + body)  # complete, but nobody waits for the answer
    _ = eventually_row(http_scene.connection, "select 1 from orbit.event_subscriptions where name = 'a'")
    again = caller.post(SUBSCRIPTIONS, body, key="k")
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")


@pytest.mark.req("orbit:API-06")
def test_every_answer_names_its_request_and_forbids_to_keep_it(one_scene: HttpScene) -> None:
    """Ids are the server's own; one that a client sends is not taken over."""
    paths = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/nowhere", "/v1/event-subscriptions")
    answers = [httpx.get(one_scene.base_url + path, headers={"orbit-request-id": "mine"}) for path in paths]
    ids = {answer.headers["orbit-request-id"] for answer in answers}
    assert len(ids) == len(paths)
    assert all(re.fullmatch("req_[0-9a-f]{32}", one) for one in ids)
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}
