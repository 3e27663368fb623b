"""The lock order of section 27, read off the SQL: in which order each transaction first takes which rows.

A function's text is walked from top to bottom, and so is that of every function that it calls. Rows are taken by `for
update` and its kin, by `update` and `delete`, and the idempotency identity by its insert. Races and observed locks are
tested elsewhere; this finds a wrong order before anybody waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest

from tests.kit.tree import ROOT

FUNCTIONS: Final = ROOT / "src" / "orbit" / "sql" / "functions"

IDENTITY: Final = "idempotency_records"
QUEUE, TASK, ATTEMPT, PERMIT = "queues", "tasks", "task_attempts", "permits"
STREAM: Final = "event_stream_locks"
SUBSCRIPTION, DELIVERY = "event_subscriptions", "event_deliveries"

ORDERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "task_submit_v1": ("orbit:TX-01", (IDENTITY, "application_quotas")),
    "task_claim_v1": ("orbit:TX-02", (QUEUE, TASK)),
    "attempt_confirm_v1": ("orbit:TX-03", (QUEUE, TASK, ATTEMPT, PERMIT, STREAM)),
    "task_cancel_v1": ("orbit:TX-04", (IDENTITY, QUEUE, TASK, ATTEMPT, PERMIT, STREAM)),
    "task_resolve_v1": ("orbit:TX-05", (IDENTITY, QUEUE, TASK, ATTEMPT, STREAM)),
    "attempt_recover_v1": ("orbit:TX-06", (QUEUE, TASK, ATTEMPT, PERMIT, STREAM)),
    "attempt_heartbeat_v1": ("orbit:TX-07", (ATTEMPT,)),
    "subscription_create_v1": ("orbit:TX-10", (IDENTITY, QUEUE, STREAM)),
    "delivery_claim_v1": ("orbit:TX-11", (SUBSCRIPTION, DELIVERY)),
    "delivery_acknowledge_v1": ("orbit:TX-12", (SUBSCRIPTION, DELIVERY)),
    "subscription_pause_v1": ("orbit:TX-13", (IDENTITY, SUBSCRIPTION)),
    "subscription_resume_v1": ("orbit:TX-13", (IDENTITY, SUBSCRIPTION)),
    "delivery_retry_v1": ("orbit:TX-14", (IDENTITY, SUBSCRIPTION, DELIVERY)),
    "subscription_get_v1": ("orbit:TX-15", ()),
    "subscription_list_v1": ("orbit:TX-15", ()),
    "delivery_get_v1": ("orbit:TX-15", ()),
    "delivery_list_v1": ("orbit:TX-15", ()),
    "task_get_v1": ("orbit:TX-15", ()),
    "subscription_hello_v1": ("orbit:TX-16", ()),
    "access_bootstrap_v1": ("orbit:TX-21", ("application_quotas",)),
    "credential_rotate_v1": ("orbit:TX-22", ("credentials",)),
    "credential_revoke_v1": ("orbit:TX-22", ("credentials",)),
    "quota_set_v1": ("orbit:TX-22", ("application_quotas",)),
}

_STEP: Final = re.compile(
    r"\bfor (?P<mode>no key update|update|share)\b"
    r"|(?<!for )(?<!on )\bupdate orbit\.(?P<updated>\w+)"
    r"|\bdelete from orbit\.(?P<deleted>\w+)"
    rf"|\binsert into orbit\.(?P<identity>{IDENTITY})\b"
    r"|\binsert into orbit\.(?P<inserted>\w+)"
    r"|\borbit\.(?P<called>\w+)\s*\("
)


@cache
def _bodies() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in FUNCTIONS.rglob("*.sql"):
        text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
        found[f"{path.parent.name}_{path.stem}"] = text[text.index("as $$") :]
    return found


def _steps(function: str) -> Iterator[tuple[str, str]]:
    """Every step as (kind, table): kind is a lock mode, `change`, or `insert`."""
    body = _bodies()[function]
    for match in _STEP.finditer(body):
        if match["mode"]:
            tables = re.findall(r"\bfrom orbit\.(\w+)", body[: match.start()].rsplit(";", 1)[-1])
            assert tables, f"{function} locks rows of an unknown table"
            yield match["mode"], tables[-1]
        elif match["called"]:
            if match["called"] in _bodies():
                yield from _steps(match["called"])
        elif match["identity"]:
            yield "change", IDENTITY
        elif match["inserted"]:
            statement = body[match.start() :].split(";", 1)[0]
            yield ("change" if "do update" in statement else "insert"), match["inserted"]
        else:
            yield "change", match["updated"] or match["deleted"]


def _taken(function: str) -> list[str]:
    """Tables in the order in which rows of theirs are first taken."""
    return list(dict.fromkeys(table for kind, table in _steps(function) if kind != "insert"))


@pytest.mark.parametrize(
    ("function", "order"),
    [
        pytest.param(
            function, order, marks=pytest.mark.req(requirement, "orbit:LCK-01", "orbit:LCK-03", "orbit:LCK-04")
        )
        for function, (requirement, order) in ORDERS.items()
    ],
)
def test_a_transaction_takes_its_rows_in_the_order_of_the_specification(function: str, order: tuple[str, ...]) -> None:
    """What section 27 lists, from left to right, and nothing else."""
    assert _taken(function) == list(order)


@pytest.mark.req("orbit:TX-03b", "orbit:TX-02", "orbit:LCK-01")
def test_a_safe_retry_and_a_claim_take_no_stream_row() -> None:
    """The stream row is taken in one place only, which those call who write a result."""
    callers = {name for name, body in _bodies().items() if re.search(rf"from orbit\.{STREAM}\b[^;]*\bfor\b", body)}
    assert callers == {"journal_append", "subscription_create_v1"}
    users = {name for name, body in _bodies().items() if "orbit.journal_append(" in body and name != "journal_append"}
    assert users
    assert "task_claim_v1" not in users


@pytest.mark.req("orbit:LCK-08", "orbit:JRN-17")
@pytest.mark.parametrize("function", [name for name, (_, order) in ORDERS.items() if STREAM in order])
def test_nothing_that_exists_is_locked_after_the_stream_row(function: str) -> None:
    """After it come inserts, and the response of an identity that this transaction has inserted itself."""
    steps = list(_steps(function))
    stream = next(place for place, (kind, table) in enumerate(steps) if table == STREAM and kind != "insert")
    after = [(kind, table) for kind, table in steps[stream + 1 :] if kind != "insert"]
    assert {table for _, table in after} <= {IDENTITY}


@pytest.mark.req("orbit:LCK-07")
def test_rows_are_locked_in_the_modes_of_the_specification() -> None:
    """Producers take the stream row for no key update, a creation for update; only a creation shares the queue."""
    modes = {
        function: {table: kind for kind, table in reversed(list(_steps(function))) if kind not in {"insert", "change"}}
        for function in ORDERS
    }
    for function in ("attempt_confirm_v1", "task_cancel_v1", "task_resolve_v1", "attempt_recover_v1"):
        assert modes[function][STREAM] == "no key update"
        assert modes[function][QUEUE] == modes[function][TASK] == "update"
    assert modes["subscription_create_v1"] == {QUEUE: "share", STREAM: "update"}
    shared = {function for function, found in modes.items() if "share" in found.values()}
    assert shared == {"subscription_create_v1"}


@pytest.mark.req("orbit:JRN-19")
def test_lock_and_allocation_are_two_statements_of_one_volatile_function() -> None:
    """One statement's snapshot would be older than the lock that it takes."""
    text = (FUNCTIONS / "journal" / "append.sql").read_text(encoding="utf-8")
    assert re.search(r"^volatile$", text, re.MULTILINE)
    lock, insert = text.index("for no key update;"), text.index("insert into orbit.result_events")
    assert lock < insert
    assert "orbit.stream_head(p_namespace_id) + 1" in text[insert:]


@pytest.mark.req("orbit:MAT-15", "orbit:IDM-12", "orbit:MAT-10", "orbit:MAT-11", "orbit:MIG-14")
def test_no_function_ignores_a_conflict_of_deliveries_or_cleans_up() -> None:
    """Deliveries are inserted plainly; nothing deletes facts, deliveries or identities, or moves the boundary."""
    for name, body in _bodies().items():
        for statement in body.split(";"):
            if "insert into orbit.event_deliveries" in statement:
                assert "on conflict" not in statement, name
        deleted = set(re.findall(r"\bdelete from orbit\.(\w+)", body))
        assert deleted <= {PERMIT}, name
        assert not re.search(rf"\bupdate orbit\.{STREAM}\b", body), name
