"""What a new subscription is bound to, and what is refused before it exists (sections 5, 7, 13)."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from orbit.model.states import ResultType
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Credential, Scene

ALL_TYPES = [str(one) for one in ResultType]


def create(scene: Scene, name: str = "s", **changed: Any) -> tuple[int, dict[str, Any], bool]:
    """Create a subscription with raw arguments; status, body, replayed."""
    given: dict[str, Any] = {
        "queue": "orders",
        "types": None,
        "from_sequence": None,
        "max_pending": None,
        "max_attempts": None,
        "key": scene.key(),
        "sha": "a" * 64,
        "credential": scene.owner,
    } | changed
    owner: Credential = given["credential"]
    status, text, replayed, _ = scene.row(
        "select * from orbit.subscription_create_v1(%s, %s, %s, %s::text[], %s::bigint, %s::int, %s::int, %s, %s)",
        owner.sha256,
        name,
        given["queue"],
        given["types"],
        given["from_sequence"],
        given["max_pending"],
        given["max_attempts"],
        given["key"],
        given["sha"],
    )
    return status, json.loads(text), replayed


def refusal(scene: Scene, name: str = "s", **changed: Any) -> tuple[str | None, dict[str, Any]]:
    """SQLSTATE and extension members of a refused creation."""
    with pytest.raises(psycopg.Error) as refused:
        create(scene, name, **changed)
    detail = refused.value.diag.message_detail
    return refused.value.sqlstate, json.loads(detail) if detail and detail.startswith("{") else {}


@pytest.mark.req("orbit:SUB-01", "orbit:SUB-20", "orbit:SUB-23", "orbit:SUB-26", "orbit:API-08")
def test_a_new_subscription_has_every_member_in_the_order_of_the_specification(orbit_scene: Scene) -> None:
    """The body is that of section 15; status, revision, cursor and owner are set as they must be."""
    orbit_scene.results(2)
    status, body, replayed = create(orbit_scene, "billing-results", max_pending=7, max_attempts=9)
    assert (status, replayed) == (201, False)
    assert list(body) == [
        "subscription_id",
        "namespace_id",
        "name",
        "queue",
        "queue_id",
        "types",
        "status",
        "from_sequence",
        "cursor_sequence",
        "max_pending",
        "max_attempts",
        "pending_count",
        "revision",
        "owner_credential_id",
        "created_at",
        "updated_at",
    ]
    expected = {
        "namespace_id": orbit_scene.namespace_id,
        "name": "billing-results",
        "queue": "orders",
        "queue_id": orbit_scene.queue_id,
        "types": ALL_TYPES,
        "status": "ACTIVE",
        "from_sequence": 2,
        "cursor_sequence": 2,
        "max_pending": 7,
        "max_attempts": 9,
        "pending_count": 0,
        "revision": 1,
        "owner_credential_id": orbit_scene.owner.credential_id,
    }
    assert expected.items() <= body.items()
    assert body["created_at"] == body["updated_at"]
    assert len(body["created_at"]) == len("2026-01-05T08:30:00.000000Z")
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:SUB-08", "orbit:SUB-09", "orbit:SUB-10", "orbit:SUB-12", "orbit:T-N05", "orbit:MIG-11")
def test_an_omitted_start_is_the_head_and_zero_is_the_beginning(orbit_scene: Scene) -> None:
    """Omitted and 0 are told apart; a negative start is refused, and nothing is written."""
    orbit_scene.results(3)
    assert create(orbit_scene, "omitted")[1]["from_sequence"] == 3
    assert create(orbit_scene, "zero", from_sequence=0)[1]["from_sequence"] == 0
    assert create(orbit_scene, "two", from_sequence=2)[1]["from_sequence"] == 2
    assert refusal(orbit_scene, "negative", from_sequence=-1)[0] == "OB026"
    for name, sequences in (("omitted", []), ("zero", [1, 2, 3]), ("two", [3])):
        identity = orbit_scene.value("select subscription_id from orbit.event_subscriptions where name = %s", name)
        assert [one.event_sequence for one in orbit_scene.lease(identity).leases] == sequences


@pytest.mark.req("orbit:SUB-11", "orbit:T-N06", "orbit:MIG-16")
def test_a_start_beyond_the_head_is_refused_with_the_head(orbit_scene: Scene) -> None:
    """The head itself is accepted."""
    orbit_scene.results(2)
    assert refusal(orbit_scene, from_sequence=3) == ("OB021", {"last_sequence": 2})
    assert create(orbit_scene, from_sequence=2)[1]["from_sequence"] == 2


@pytest.mark.req("orbit:SUB-02", "orbit:SUB-13", "orbit:SUB-24", "orbit:T-N07")
def test_types_are_a_set_of_result_types_in_one_fixed_order(orbit_scene: Scene) -> None:
    """Nothing means all four; duplicates and other types are refused."""
    assert create(orbit_scene, "none")[1]["types"] == ALL_TYPES
    assert create(orbit_scene, "empty", types=[])[1]["types"] == ALL_TYPES
    assert create(orbit_scene, "two", types=["task.needs_review", "task.failed"])[1]["types"] == [
        "task.failed",
        "task.needs_review",
    ]
    several: list[list[str | None]] = [["task.failed"] * 2, ["task.requeued"], ["task.created"], ["x"], [None]]
    for wrong in several:
        assert refusal(orbit_scene, types=wrong)[0] == "OB026"


@pytest.mark.req("orbit:SUB-14", "orbit:SUB-15", "orbit:T-N08")
@pytest.mark.parametrize(("member", "default", "most"), [("max_pending", 100, 1000), ("max_attempts", 20, 100)])
def test_window_and_budget_have_a_default_and_a_range(orbit_scene: Scene, member: str, default: int, most: int) -> None:
    """0 and nothing are the default; both ends are accepted, one more or less is refused."""
    assert create(orbit_scene, "zero", **{member: 0})[1][member] == default
    assert create(orbit_scene, "none")[1][member] == default
    assert create(orbit_scene, "least", **{member: 1})[1][member] == 1
    assert create(orbit_scene, "most", **{member: most})[1][member] == most
    for wrong in (-1, most + 1):
        assert refusal(orbit_scene, "wrong", **{member: wrong})[0] == "OB026"


@pytest.mark.req("orbit:SUB-03", "orbit:SUB-04")
def test_a_name_has_its_form_and_is_taken_once_in_a_namespace(orbit_scene: Scene) -> None:
    """Names are case-sensitive; another namespace may use the same one."""
    for wrong in ("", "-a", "a" * 129, "a\n", "ä", "a b"):
        assert refusal(orbit_scene, wrong)[0] == "OB026"
    create(orbit_scene, "a" * 128)
    create(orbit_scene, "Name.1_x-y")
    create(orbit_scene, "name.1_x-y")
    assert refusal(orbit_scene, "Name.1_x-y")[0] == "OB018"
    create(Scene(orbit_scene.connection, namespace="other"), "Name.1_x-y")


@pytest.mark.req("orbit:SUB-25", "orbit:AUT-10", "orbit:AUT-11")
def test_creation_asks_its_questions_in_order(orbit_scene: Scene) -> None:
    """Action before queue, queue before name; a queue outside an explicit scope does not reveal whether it exists."""
    reader = orbit_scene.issue("reader", actions=["events:read", "events:consume"])
    narrow = orbit_scene.issue("narrow", queues=["orders"])
    create(orbit_scene, "taken")
    assert refusal(orbit_scene, "taken", queue="nowhere", credential=reader)[0] == "OB004"
    assert refusal(orbit_scene, "taken", queue="nowhere")[0] == "OB006"
    orbit_scene.add_queue("existing")
    for queue in ("nowhere", "existing"):
        assert refusal(orbit_scene, "taken", queue=queue, credential=narrow)[0] == "OB005"
    assert refusal(orbit_scene, "taken", from_sequence=99)[0] == "OB018"


@pytest.mark.req("orbit:IDM-01", "orbit:IDM-08", "orbit:IDM-09", "orbit:IDM-10", "orbit:T-N10", "orbit:T-N12")
def test_a_creation_is_repeated_by_its_key(orbit_scene: Scene) -> None:
    """A replay gives the stored answer although the head moved on; another body under the key is refused."""
    first = create(orbit_scene, key="k", from_sequence=None)
    orbit_scene.results(1)
    assert create(orbit_scene, key="k") == (201, first[1], True)
    assert refusal(orbit_scene, key="k", sha="b" * 64)[0] == "OB015"
    audited = orbit_scene.value("select count(*) from orbit.audit_log where action = 'event.subscription.created'")
    assert audited == 1


@pytest.mark.req("orbit:IDM-11", "orbit:T-N10")
def test_a_failed_creation_leaves_its_key_free(orbit_scene: Scene) -> None:
    """After the cause is gone the same key succeeds."""
    assert refusal(orbit_scene, key="k", from_sequence=1)[0] == "OB021"
    orbit_scene.results(1)
    assert create(orbit_scene, key="k", from_sequence=1)[2] is False


@pytest.mark.req("orbit:IDM-02", "orbit:IDM-04", "orbit:T-N11")
def test_a_key_of_another_credential_is_another_identity(orbit_scene: Scene) -> None:
    """The same key and body from a second credential never return the first one's receipt."""
    other = orbit_scene.issue("other")
    first = create(orbit_scene, key="k")
    assert refusal(orbit_scene, key="k", credential=other)[0] == "OB018"
    second = create(orbit_scene, "different", key="k", credential=other)
    assert second[2] is False
    assert second[1]["subscription_id"] != first[1]["subscription_id"]


@pytest.mark.req("orbit:AUD-01", "orbit:AUD-07", "orbit:AUD-09")
def test_a_creation_is_audited_with_its_configuration(orbit_scene: Scene) -> None:
    """One row with the members of AUD-07."""
    _, body, _ = create(orbit_scene, max_pending=5)
    resource_type, resource_id, credential_id, detail = orbit_scene.row(
        "select resource_type, resource_id, credential_id, detail_json from orbit.audit_log"
        " where action = 'event.subscription.created'"
    )
    assert (resource_type, resource_id, credential_id) == (
        "event_subscription",
        body["subscription_id"],
        orbit_scene.owner.credential_id,
    )
    assert json.loads(detail) == {
        member: body[member] for member in ("name", "queue_id", "types", "from_sequence", "max_pending", "max_attempts")
    }


@pytest.mark.req("orbit:MIG-14", "orbit:MIG-15", "orbit:MIG-17", "orbit:T-N17", "F48")
def test_a_start_before_what_is_retained_is_refused_and_zero_begins_at_the_boundary(orbit_scene: Scene) -> None:
    """With the boundary at 11: 8 and 9 are refused, 10 and 11 accepted, 0 stored as 10."""
    orbit_scene.results(12)
    orbit_scene.run("update orbit.event_stream_locks set retained_from_sequence = 11")
    for early in (8, 9):
        assert refusal(orbit_scene, from_sequence=early) == (
            "OB022",
            {"cursor_sequence": early, "retained_from_sequence": 11},
        )
    for name, start, effective in (("ten", 10, 10), ("eleven", 11, 11), ("zero", 0, 10)):
        _, body, _ = create(orbit_scene, name, from_sequence=start)
        assert (body["from_sequence"], body["cursor_sequence"]) == (effective, effective)


@pytest.mark.req("orbit:AUT-03", "orbit:API-09", "orbit:T-N03")
def test_lists_show_what_the_credential_owns_within_its_scope_page_by_page(orbit_scene: Scene) -> None:
    """Order is time of creation and id; filters narrow; nobody else's subscriptions appear."""
    other = orbit_scene.issue("other")
    mine = [create(orbit_scene, f"s{number}")[1]["subscription_id"] for number in range(5)]
    create(orbit_scene, "foreign", credential=other)

    def page(limit: int, after: tuple[Any, ...], status: str | None = None, queue: str | None = None) -> list[Any]:
        return orbit_scene.rows(
            "select * from orbit.subscription_list_v1(%s, %s, %s, %s::int, %s::timestamptz, %s)",
            orbit_scene.owner.sha256,
            status,
            queue,
            limit,
            *after,
        )

    seen: list[str] = []
    after: tuple[Any, ...] = (None, None)
    while rows := page(2, after):
        seen += [row[1] for row in rows]
        after = rows[-1][:2]
    assert seen == mine
    assert page(9, (None, None), "PAUSED") == []
    assert page(9, (None, None), None, "nowhere") == []
    assert len(page(9, (None, None), "ACTIVE", "orders")) == 5
