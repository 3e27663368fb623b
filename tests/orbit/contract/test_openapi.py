"""The published description of the HTTP interface is that of the running server, and it is true (GEN-10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS  # pyright: ignore[reportUnknownVariableType]
from starlette.routing import Route

from orbit.model.codes import CODES
from orbit.server.http.app import OPENAPI_PATH, create_app
from orbit.server.http.openapi import document
from orbit.server.http.operations import OPERATIONS, Operation
from orbit.server.http.publish import DOCUMENTS
from orbit.server.services import open_services
from orbit.wire import answers
from orbit.wire.answers import AnswerBody
from tests.kit.orbit.callers import SUBSCRIPTIONS, Caller, HttpScene, done
from tests.kit.tree import ROOT

SEED = 20_261_201
EXAMPLES = 8
HEALTH_CHECKS = [HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.req("orbit:GEN-10")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_committed_document_is_the_one_that_the_code_makes(name: str) -> None:
    """`make orbit-docs` writes it again."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == DOCUMENTS[name](), "run make orbit-docs"


@pytest.mark.req("orbit:GEN-10", "orbit:API-01", "orbit:API-02")
async def test_the_document_names_every_route_of_the_application_and_no_other() -> None:
    """Method by method; HEAD goes with GET, and the document does not describe itself."""
    async with open_services("postgresql://nobody@127.0.0.1:1/none") as services:
        app = create_app(services)
    routes = [route for route in app.routes if isinstance(route, Route) and route.path != OPENAPI_PATH]
    served = {(route.path, method) for route in routes for method in (route.methods or set()) - {"HEAD"}}
    described = {(path, method.upper()) for path, methods in document()["paths"].items() for method in methods}
    assert served == described
    assert app.openapi() == document()


@pytest.mark.req("orbit:GEN-10")
def test_a_running_server_gives_the_committed_document(one_scene: HttpScene) -> None:
    """Whoever asks the server and whoever reads the repository build against the same."""
    committed = Path(ROOT / "docs" / "schemas" / "orbit.openapi.json").read_text(encoding="utf-8")
    assert done(one_scene.client.get(OPENAPI_PATH)) == json.loads(committed)
    assert document()["openapi"] == "3.1.0"


@pytest.mark.req("orbit:GEN-10", "orbit:ERR-03")
def test_every_code_with_a_status_is_a_problem_of_some_operation_or_of_the_router() -> None:
    """Nothing is answered that no operation announces."""
    announced = {code for operation in OPERATIONS for code in operation.problems}
    over_http = {code for code, facts in CODES.items() if facts.status is not None}
    assert over_http - announced == {"ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED", "SUBPROTOCOL_REQUIRED"}


@pytest.mark.req("orbit:GEN-10", "orbit:API-04", "orbit:API-05", "orbit:API-08", "orbit:API-12", "orbit:ERR-03")
@pytest.mark.parametrize(
    ("operation", "mode"),
    [(one, GenerationMode.POSITIVE) for one in OPERATIONS]
    + [(one, GenerationMode.NEGATIVE) for one in OPERATIONS if one.query or one.body],
    ids=lambda value: value.name if isinstance(value, Operation) else value.value,
)
def test_requests_made_from_the_document_are_answered_as_it_says(
    one_scene: HttpScene, operation: Operation, mode: GenerationMode
) -> None:
    """Statuses, bodies, headers and media types conform; what the schema forbids is refused; nothing fails inside.

    The ids of the path exist, so that answers with bodies are seen; that a body of the right form may still be refused,
    for a queue that does not exist for instance, is not a fault.
    """
    caller = one_scene.caller()
    ids = {name: value for name, value in existing_ids(one_scene, caller).items() if f"{{{name}}}" in operation.path}
    paths: Any = schemathesis.openapi.from_dict(document())
    described = paths[operation.path][operation.method]
    statuses: set[int] = set()

    @seed(SEED)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=HEALTH_CHECKS)
    @given(case=described.as_strategy(generation_mode=mode, path_parameters=ids or None))
    def ask(case: Any) -> None:  # noqa: ANN401 - schemathesis has no public type
        headers = {"Authorization": f"Bearer {caller.token}"} if operation.action else {}
        accepted: list[Any] = [CHECKS.get_one("positive_data_acceptance")]
        answer = case.call_and_validate(base_url=one_scene.base_url, headers=headers, excluded_checks=accepted)
        statuses.add(answer.status_code)

    ask()
    assert mode is GenerationMode.NEGATIVE or operation.method == "POST" or operation.status in statuses


def existing_ids(scene: HttpScene, caller: Caller) -> dict[str, str]:
    """A subscription, a delivery, a task and an attempt that the caller may use."""
    _ = caller.submit()
    (claim,) = caller.claim()
    _ = caller.confirm(claim)
    name = claim["task_id"][-12:]
    subscription_id = caller.subscribe(f"s-{name}", from_sequence=0)["subscription_id"]
    delivery_id = scene.claim_deliveries(caller, subscription_id, 1)[0]
    task, attempt = claim["task_id"], claim["attempt_id"]
    return {"subscription_id": subscription_id, "delivery_id": delivery_id, "task_id": task, "attempt_id": attempt}


@pytest.mark.req("orbit:T-P05", "orbit:SDK-17", "orbit:TSK-15", "orbit:API-01")
def test_every_answer_has_exactly_the_members_of_its_model_in_their_order(one_scene: HttpScene) -> None:
    """The models describe what the database composes; nothing more leaves, and nothing is missing."""
    caller = one_scene.caller()
    ids = existing_ids(one_scene, caller)
    subscription = f"{SUBSCRIPTIONS}/{ids['subscription_id']}"
    found: list[tuple[type[AnswerBody], httpx.Response | dict[str, Any]]] = [
        (answers.Task, caller.get(f"/v1/tasks/{ids['task_id']}")),
        (answers.Subscription, caller.get(subscription)),
        (answers.SubscriptionPage, caller.get(SUBSCRIPTIONS)),
        (answers.Delivery, caller.get(f"{subscription}/deliveries/{ids['delivery_id']}")),
        (answers.DeliveryPage, caller.get(f"{subscription}/deliveries")),
        (answers.Receipt, caller.finish()),
    ]
    _ = caller.submit()
    found.append((answers.TaskClaim, caller.claim()[0]))
    for model, answer in found:
        body = answer if isinstance(answer, dict) else done(answer)
        assert list(body) == list(model.model_fields), model.__name__
        assert model.model_validate(body)
