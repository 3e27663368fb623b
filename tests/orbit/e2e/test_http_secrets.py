"""Nothing secret leaves by any way but its own: answers, logs, audit, errors and reprs (T-P09)."""

from __future__ import annotations

import base64
import io
from dataclasses import asdict

import pytest

from orbit.server.run import ServerSettings
from seapost.telemetry import logging
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.callers import SUBSCRIPTIONS, Caller, HttpScene, done, open_http_scene
from tests.kit.orbit.server import serving

INPUT, RESULT = "inputWithinATask", "resultOfATask"


def forms(secret: bytes) -> list[str]:
    """The ways in which bytes are usually written."""
    return [secret.hex(), base64.b64encode(secret).decode(), base64.urlsafe_b64encode(secret).decode().rstrip("=")]


def whole_life(scene: HttpScene, caller: Caller) -> tuple[list[str], list[str]]:
    """Use every operation, well and badly; returns the secrets, and the answers that may hold none of them."""
    answers: list[str] = []
    task = caller.post("/v1/tasks", f'{{"queue":"billing","input":"{INPUT}"}}')
    answers.append(task.text)
    (claim,) = caller.claim()
    answers.append(caller.confirm(claim, f'{{"broken":"{RESULT}"').text)
    answers.append(caller.confirm({**claim, "lease_secret": claim["lease_secret"][:-1] + "~"}, f'"{RESULT}"').text)
    answers.append(caller.post("/v1/tasks", f'{{"queue":"billing","input":"{INPUT}","{INPUT[:3]}":1}}').text)
    answers.append(caller.confirm(claim, f'"{RESULT}"').text)
    answers.append(caller.confirm(claim, '"another"').text)
    subscription = caller.subscribe("a", from_sequence=0, max_attempts=1)
    path = f"{SUBSCRIPTIONS}/{subscription['subscription_id']}"
    delivery = scene.exhausted_delivery(caller, subscription["subscription_id"])
    delivery_path = f"{path}/deliveries/{delivery['delivery_id']}"
    retry = {"expected_revision": delivery["revision"], "reason": "r", "additional_attempts": 1}
    answers += [caller.post(f"{delivery_path}/retry", retry).text, caller.post(f"{delivery_path}/retry", retry).text]
    answers += [caller.post(f"{path}/{verb}", {"expected_revision": 1}).text for verb in ("pause", "resume")]
    answers += [caller.get(place).text for place in (SUBSCRIPTIONS, path, f"{path}/deliveries", delivery_path)]
    answers.append(caller.get(f"{path}/exhausted?token={caller.token}").text)
    answers.append(scene.client.get(f"/v1/tasks?access_token={caller.token}").text)
    return [claim["lease_secret"], caller.token, *forms(caller.sha256)], answers


@pytest.mark.req("orbit:T-P09", "orbit:API-10", "orbit:AUT-14", "orbit:SRC-14", "orbit:AUD-03", "orbit:LSE-08", "F87")
def test_no_secret_input_or_result_is_in_answers_logs_or_audit(orbit_database: TestDatabase) -> None:
    """Every operation once, errors included, with the access log on; a result is shown by its task only."""
    log = io.StringIO()
    logging.configure("debug", log)
    try:
        with (
            serving(orbit_database.dsn, access_log=True) as server,
            open_http_scene(server.base_url, orbit_database) as scene,
        ):
            caller = scene.caller()
            secrets, answers = whole_life(scene, caller)
            task_id = scene.connection.execute("select task_id from orbit.tasks").fetchone()
            assert task_id is not None
            assert RESULT in caller.get(f"/v1/tasks/{task_id[0]}").text
            assert INPUT not in caller.get(f"/v1/tasks/{task_id[0]}").text
            digests = scene.connection.execute(
                "select lease_secret_sha256 from orbit.task_attempts union all"
                " select lease_secret_sha256 from orbit.event_deliveries"
            ).fetchall()
            audit = scene.connection.execute("select string_agg(a::text, e'\\n') from orbit.audit_log as a").fetchone()
            eventually(lambda: log.getvalue().count("orbit.request_served") >= len(answers))
    finally:
        logging.configure()
    found = "\n".join([*answers, log.getvalue(), str(audit)])
    for secret in [*secrets, *(form for (digest,) in digests for form in forms(digest)), INPUT, RESULT]:
        assert secret not in found
    assert "?" not in log.getvalue()
    assert '"route": "/v1/event-subscriptions/{subscription_id}/exhausted"' in log.getvalue()


@pytest.mark.req("orbit:T-P09", "orbit:API-12", "orbit:ERR-03")
def test_a_defect_is_internal_and_tells_nothing(orbit_database: TestDatabase) -> None:
    """What the database says may quote a row; neither the answer nor the log repeats it."""
    log = io.StringIO()
    logging.configure("debug", log)
    try:
        with serving(orbit_database.dsn) as server, open_http_scene(server.base_url, orbit_database) as scene:
            caller = scene.caller()
            _ = scene.connection.execute(
                "create function test_defect() returns trigger language plpgsql as $$"
                " begin raise exception 'hush %', new.input_json; end $$;"
                " create trigger defect before insert on orbit.tasks for each row execute function test_defect()"
            )
            answer = caller.post("/v1/tasks", {"queue": "billing", "input": INPUT})
            assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
            eventually(lambda: "orbit.request_failed" in log.getvalue())
            assert answer.json()["request_id"] in log.getvalue()
    finally:
        logging.configure()
    for word in ("hush", INPUT, "Traceback"):
        assert word not in answer.text + log.getvalue()


@pytest.mark.req("orbit:T-P09")
def test_settings_and_bodies_do_not_show_what_they_hold() -> None:
    """A connection string may carry a password."""
    settings = ServerSettings(dsn="postgresql://user:hush@host/db")
    assert "hush" not in repr(settings)
    assert asdict(settings)["dsn"].endswith("db")


@pytest.mark.req("orbit:OPS-03")
def test_metrics_are_given_and_name_nobody(http_scene: HttpScene) -> None:
    """The text format of Prometheus, without a token and without ids of tasks."""
    caller = http_scene.caller()
    receipt = caller.finish()
    answer = http_scene.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert receipt["task_id"] not in answer.text
    assert done(http_scene.client.get("/healthz")) == {"status": "ok"}
