"""The operation timeline: by one exact identifier, for one audience, equal to a fold of all events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

import pytest
from psycopg import Connection

from oceanway.contracts.errors import InvalidArgument
from oceanway.operations.fold import fold, view_of
from oceanway.operations.queries import OPERATIONS_MAX, Audience, IdentifierKind, find
from seapost.testing.databases import TestDatabase
from tests.kit.oceanway.operations import Life, Told
from tests.kit.oceanway.operations_cases import BillingPeer
from tests.kit.oceanway.operations_direct import Direct

SEEDS = (21, 22, 23)


@pytest.fixture(scope="module")
def database(core_database: TestDatabase) -> TestDatabase:
    """Give the database of operations."""
    return core_database


@pytest.fixture
def writer(database: TestDatabase) -> Iterator[Direct]:
    """Give version 1 of the projection, in a session of its consumer's role."""
    with database.connect("oceanway_operations_consumer", autocommit=True) as session:
        yield Direct(session, BillingPeer(), "1")


@pytest.fixture
def session(database: TestDatabase) -> Iterator[Connection[Any]]:
    """Give a session of the role that queries."""
    with database.connect("oceanway_operations_service", autocommit=True) as session:
        yield session


@pytest.mark.req("OPS-13", "OPS-14", "OPS-17")
def test_a_missing_wallet_shows_as_source_delay_and_a_lone_wallet_not_at_all(
    writer: Direct, session: Connection[Any]
) -> None:
    """The reservation is null and named as late; a wallet without its run is found under no identifier."""
    life = Life()
    wallet = life.wallet_reserved()
    writer.apply(life.run_created())
    [shown] = find(session, IdentifierKind.RUN, life.run_id, Audience.OPERATOR).operations
    assert (shown["reservation"], shown["sourceDelay"]) == (None, ["wallet.reserved@2.0"])
    writer.apply(wallet)
    [shown] = find(session, IdentifierKind.RESERVATION, life.reservation, Audience.OPERATOR).operations
    assert (shown["reservation"]["reservedAmount"], shown["sourceDelay"]) == ("10", [])
    lone = Life()
    alone = lone.wallet_reserved()
    writer.apply(alone)
    for kind, value in (("run", lone.run_id), ("reservation", lone.reservation), ("event", str(alone.event_id))):
        assert find(session, IdentifierKind(kind), value, Audience.OPERATOR).operations == ()


@pytest.mark.req("OPS-05")
def test_only_a_complete_identifier_finds_an_operation(writer: Direct, session: Connection[Any]) -> None:
    """Each kind finds it; a prefix, a pattern, another kind or another value find nothing."""
    life = Life()
    events = [life.run_created(), life.wallet_reserved(), life.finalize(), *life.open_exposure("3")]
    writer.fold(events)
    case_ref = life.open_case
    assert case_ref is not None
    values = {
        "run": life.run_id,
        "reservation": life.reservation,
        "account": life.account,
        "attempt": life.attempt,
        "dimension": life.dimension,
        "case": case_ref,
        "event": str(events[2].event_id),
    }
    for kind, value in values.items():
        [shown] = find(session, IdentifierKind(kind), value, Audience.OPERATOR).operations
        assert shown["operationId"] == life.run_id
    for kind, value in (("run", life.run_id[:-1]), ("run", "run-%"), ("attempt", life.run_id), ("event", str(uuid4()))):
        assert find(session, IdentifierKind(kind), value, Audience.OPERATOR).operations == ()
    for kind, value in (("run", ""), ("run", "x" * 201), ("event", "no-uuid")):
        with pytest.raises(InvalidArgument):
            _ = find(session, IdentifierKind(kind), value, Audience.OPERATOR)


def test_an_account_shows_a_bounded_number_of_operations(writer: Direct, session: Connection[Any]) -> None:
    """And says that there are more."""
    account = f"account-{uuid4().hex}"
    for _ in range(OPERATIONS_MAX + 1):
        writer.apply(Life(account).run_created())
    found = find(session, IdentifierKind.ACCOUNT, account, Audience.OPERATOR)
    assert (len(found.operations), found.truncated) == (OPERATIONS_MAX, True)


def leaves(value: Any, name: str = "") -> list[tuple[str, str]]:  # noqa: ANN401 - a JSON value
    """Every leaf of a document with the name of its field."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return [leaf for field, below in members.items() for leaf in leaves(below, field)]
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [leaf for below in items for leaf in leaves(below, name)]
    return [(name, str(value))]


@pytest.mark.req("SEC-17")
def test_each_audience_sees_what_it_may(writer: Direct, session: Connection[Any]) -> None:
    """Support: no tenant, account or person; auditors: no amount and no identifier either, but digests of them."""
    life = Life()
    writer.fold(
        [life.run_created(), life.wallet_reserved(), life.finalize(), *life.open_exposure("3"), life.close()[0]]
    )

    def seen(audience: Audience) -> tuple[dict[str, Any], str]:
        [document] = find(session, IdentifierKind.RUN, life.run_id, audience).operations
        return document, json.dumps(document)

    operator, full = seen(Audience.OPERATOR)
    support, text = seen(Audience.SUPPORT)
    auditor, digests = seen(Audience.AUDITOR)
    secrets = [life.subject["tenant_id"], life.subject["workspace_id"], life.account, "worker-1"]
    assert all(secret in full for secret in secrets)
    assert not any(secret in text or secret in digests for secret in secrets)
    assert support["finalization"] == operator["finalization"]
    assert support["tenant"]["tenantId"].startswith("hidden:")
    assert seen(Audience.SUPPORT)[1] == text
    for value in (life.run_id, life.reservation, life.attempt, life.dimension):
        assert value in text
        assert value not in digests
    amounts = {value for name, value in leaves(auditor) if name.endswith(("Amount", "Delta"))}
    assert all(value == "None" or value.startswith("sha256:") for value in amounts)
    assert [one["eventType"] for one in auditor["timeline"]] == [one["eventType"] for one in operator["timeline"]]


@pytest.mark.req("OPS-17", "NEG-42", "OPS-18")
def test_a_query_shows_only_this_databases_own_runtime(writer: Direct, session: Connection[Any]) -> None:
    """Deliveries of other producers are not shown, and a query appends no event."""
    life = Life()
    writer.fold([life.run_created(), life.finalize()])
    [shown] = find(session, IdentifierKind.RUN, life.run_id, Audience.OPERATOR).operations
    assert shown["runtime"] == []
    assert {one["producer"] for one in shown["timeline"]} == {"core", "billing"}


@pytest.mark.req("CASE-26", "OPS-05")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_shown_equals_a_fold_of_all_events(database: TestDatabase, session: Connection[Any], seed: int) -> None:
    """Applied in a random order, queried, and compared with a fold that shares nothing with the projector."""
    generator = random.Random(seed)
    billing = BillingPeer()
    for _ in range(3):
        life = Life()
        cases = billing.know(life)
        with database.connect(autocommit=True) as owner:
            cases.reserve(owner, 3)
        events: list[Told] = [life.run_created(), life.wallet_reserved(), life.finalize()]
        for _ in range(generator.randrange(4)):
            events += generator.choice(
                [lambda life=life: [life.adjust("1")], lambda life=life: both(life, generator)]
            )()
        known = [cases.request(1), cases.resolve(1), cases.request(2), cases.request(3)]
        events += generator.sample(known, generator.randrange(5))
        order = generator.sample(events, len(events))
        with database.connect("oceanway_operations_consumer", autocommit=True) as consumer:
            Direct(consumer, billing, "1").fold(order)
        [shown] = find(session, IdentifierKind.RUN, life.run_id, Audience.OPERATOR).operations
        assert view_of(shown) == fold(told.envelope for told in order)[life.run_id], f"seed {seed}"


def both(life: Life, generator: random.Random) -> list[Told]:
    """Open an exposure and close it in one of three ways."""
    opened = life.open_exposure("3")
    how = generator.choice(["charge", "waive", "resolve"])
    return [*opened, *(life.resolve() if how == "resolve" else life.close(how))]
