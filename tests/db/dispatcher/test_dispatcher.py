"""From append to receipt: the whole walk with a real database and scripted consumers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from seapost.database.pool import AsyncPool
from seapost.model.delivery import Claim
from seapost.model.errors import InvalidSetting
from seapost.model.outcome import ErrorCode, NonRetryable, Outcome, Retryable
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.database import TestDatabase
from tests.kit.dispatching import (
    QUICK,
    QUICK_PROCESS,
    ScriptedTransport,
    acknowledge_all,
    acknowledged,
    all_acknowledged,
    destination,
    serving,
)
from tests.kit.eventually import eventually_async
from tests.kit.kernel import Kernel


@pytest.mark.req("CLM-01", "DLV-03", "DLV-07", "DLV-12", "PUB-01")
async def test_every_delivery_is_acknowledged_with_its_receipt(database: TestDatabase, lean_kernel: Kernel) -> None:
    """What was appended before and after the start reaches each destination once and is published."""
    early = lean_kernel.append_new(SHIPPED, 20)
    billing, search = ScriptedTransport(), ScriptedTransport()
    async with serving(database, (destination(BILLING), billing), (destination(SEARCH), search)) as service:
        late = lean_kernel.append_new(PLACED, 20)
        await all_acknowledged(lean_kernel, 60)
        await eventually_async(lambda: service.counted("seapost_deliveries_settled_total{") == 60)
    assert sorted(claim.fence.event_id for claim in billing.delivered) == sorted(early + late)
    assert sorted(claim.fence.event_id for claim in search.delivered) == sorted(early)
    assert lean_kernel.count("publication") == 40
    assert (
        lean_kernel.value(
            "select count(distinct ack_receipt_key) from seapost.outbox_deliveries where ack_receipt_key is not null"
        )
        == 40
    )


@pytest.mark.req("CLM-04", "F81")
async def test_nothing_of_the_database_is_held_during_a_call(database: TestDatabase, lean_kernel: Kernel) -> None:
    """While a consumer works, the claim is committed, no transaction is open and every connection is in the pool."""
    seen: list[tuple[int, int, int]] = []

    async def look(claims: Sequence[Claim]) -> Sequence[Outcome]:
        open_transactions = lean_kernel.value(
            "select count(*) from pg_stat_activity where application_name = 'seapost-dispatcher'"
            " and datname = current_database() and state <> 'idle'"
        )
        starts = lean_kernel.count("delivery_attempt_start")
        stats = service.pool.get_stats()
        seen.append((open_transactions, starts, stats["pool_size"] - stats["pool_available"]))
        return await acknowledge_all(claims)

    settings = replace(QUICK, lanes=1)
    process = replace(QUICK_PROCESS, recover_every_seconds=3_600.0)
    async with serving(database, (settings, ScriptedTransport(look)), settings=process) as service:
        await eventually_async(
            lambda: service.dispatcher.listener is not None and service.dispatcher.listener.connected
        )
        await eventually_async(lambda: _is_at_rest(service.pool))  # it grows while the loops start together
        lean_kernel.append_new(PLACED)
        await all_acknowledged(lean_kernel, 1)
    assert seen == [(0, 1, 0)]


def _is_at_rest(pool: AsyncPool) -> bool:
    stats = pool.get_stats()
    return stats["pool_size"] == stats["pool_available"]


@pytest.mark.req("DLV-04", "DLV-13", "RTY-02")
async def test_a_retryable_outcome_is_tried_again(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A refusal is a finish with its code; the delivery comes back as the next attempt and is acknowledged."""

    async def busy_twice(claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [
            acknowledged(claim) if claim.attempt_number > 2 else Retryable(ErrorCode.CAPACITY_PROTECTED, "ref-1")
            for claim in claims
        ]

    (event_id,) = lean_kernel.append_new()
    async with serving(database, (QUICK, ScriptedTransport(busy_twice))):
        await all_acknowledged(lean_kernel, 1)
    finishes = lean_kernel.rows(
        "select f.outcome, f.error_code, f.error_ref from seapost.delivery_attempt_finish as f"
        " join seapost.delivery_attempt_start as s using (event_id, attempt_id)"
        " where event_id = %s order by s.attempt_number",
        event_id,
    )
    assert finishes == [(2, "capacity_protected", "ref-1"), (2, "capacity_protected", "ref-1"), (1, None, None)]


@pytest.mark.req("DLV-05", "RTY-03")
async def test_a_non_retryable_outcome_is_quarantined(database: TestDatabase, lean_kernel: Kernel) -> None:
    """What cannot be processed stays in sight with its reason, and its neighbours are delivered."""
    bad, *good = lean_kernel.append_new(PLACED, 5)

    async def choosy(claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [
            NonRetryable(ErrorCode.SCHEMA_UNKNOWN) if claim.fence.event_id == bad else acknowledged(claim)
            for claim in claims
        ]

    async with serving(database, (QUICK, ScriptedTransport(choosy))):
        await all_acknowledged(lean_kernel, len(good))
        await eventually_async(lambda: lean_kernel.status(bad) == "quarantined")
    assert lean_kernel.row("select event_id, reason from seapost.delivery_quarantine") == (bad, "schema_unknown")


@pytest.mark.req("AMB-18", "RTY-04")
async def test_a_configured_maximum_ends_in_quarantine(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Three counted failures of three are the end, with the reason policy_max_attempts; nothing is called success."""

    async def never(claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE)] * len(claims)

    (event_id,) = lean_kernel.append_new()
    transport = ScriptedTransport(never)
    async with serving(database, (replace(QUICK, max_attempts=3), transport)):
        await eventually_async(lambda: lean_kernel.status(event_id) == "quarantined")
    assert len(transport.calls) == 3
    assert lean_kernel.value("select reason from seapost.delivery_quarantine") == "policy_max_attempts"
    assert lean_kernel.published_at(event_id) is None


@pytest.mark.req("AMB-18", "AMB-53")
async def test_a_revision_gap_never_exhausts_the_maximum(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Waiting for a missing revision goes on beyond any configured maximum."""

    async def gap(claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [
            acknowledged(claim) if claim.attempt_number > 5 else Retryable(ErrorCode.REVISION_GAP) for claim in claims
        ]

    lean_kernel.append_new()
    async with serving(database, (replace(QUICK, max_attempts=2), ScriptedTransport(gap))):
        await all_acknowledged(lean_kernel, 1)


@pytest.mark.req("DLV-06", "DLV-07", "DLV-08", "DLV-11", "REF-07")
@pytest.mark.parametrize(
    "changes",
    [
        {"consumer_name": "search_consumer"},
        {"destination": "search"},
        {"event_type": "order.shipped@1"},
        {"event_envelope_sha256": "0" * 64},
        {"event_id": "0197f3c0-5a2e-7c31-9d4b-0a1b2c3d4e5f"},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_receipt_that_does_not_match_is_never_accepted(
    database: TestDatabase, lean_kernel: Kernel, changes: dict[str, object]
) -> None:
    """A well-formed receipt about something else is a retry with ack_invalid and an alarm, for ever if need be."""

    async def liar(claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [acknowledged(claim) if claim.attempt_number > 3 else acknowledged(claim, **changes) for claim in claims]

    (event_id,) = lean_kernel.append_new()
    async with serving(database, (QUICK, ScriptedTransport(liar))) as service:
        await all_acknowledged(lean_kernel, 1)
        await eventually_async(lambda: service.counted("seapost_settles_invalid_total{") == 3)
    codes = lean_kernel.rows(
        "select f.error_code from seapost.delivery_attempt_finish as f"
        " join seapost.delivery_attempt_start as s using (event_id, attempt_id)"
        " where event_id = %s order by s.attempt_number",
        event_id,
    )
    assert codes == [("ack_invalid",)] * 3 + [(None,)]


@pytest.mark.req("DLV-06", "RTY-01")
@pytest.mark.parametrize("rubbish", ["short", "strings", "none"])
async def test_a_transport_that_answers_rubbish_is_survived(
    database: TestDatabase, lean_kernel: Kernel, rubbish: str
) -> None:
    """Too few outcomes, outcomes of no known kind, or nothing at all: every delivery is tried again."""
    answers: dict[str, object] = {"short": [], "strings": ["ok"], "none": None}

    async def broken(claims: Sequence[Claim]) -> Sequence[Outcome]:
        if claims[0].attempt_number > 1:
            return await acknowledge_all(claims)
        return answers[rubbish]  # pyright: ignore[reportReturnType] - that is the point

    lean_kernel.append_new()
    async with serving(database, (QUICK, ScriptedTransport(broken))):
        await all_acknowledged(lean_kernel, 1)
    assert (
        lean_kernel.value("select error_code from seapost.delivery_attempt_finish where outcome = 2") == "ack_invalid"
    )


@pytest.mark.req("F23", "F29")
async def test_a_broken_destination_does_not_disturb_another(database: TestDatabase, lean_kernel: Kernel) -> None:
    """One destination hangs beyond its timeout and raises in turn; the other gets everything meanwhile."""
    billing, search = ScriptedTransport(), ScriptedTransport()

    async def broken(claims: Sequence[Claim]) -> Sequence[Outcome]:
        del claims
        if len(billing.calls) % 2:
            await eventually_async(lambda: False, deadline_seconds=60)
        raise RuntimeError("a defect of a transport")

    billing.script = broken
    lean_kernel.append_new(SHIPPED, 50)
    async with serving(
        database, (replace(QUICK, timeout_seconds=0.05), billing), (destination(SEARCH), search)
    ) as service:
        await all_acknowledged(lean_kernel, 50)
        await eventually_async(lambda: len(billing.calls) > 2)
        assert not any(turn.overdue for turn in service.dispatcher.progress())
    codes = lean_kernel.rows("select distinct error_code from seapost.delivery_attempt_finish where outcome = 2")
    assert ("timeout",) in codes


@pytest.mark.req("F29")
async def test_the_breaker_probes_and_ramps(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A consumer that is down gets few calls; when it is back, one delivery comes first, then 2, 4, 8 and so on."""
    down = True
    transport = ScriptedTransport()

    async def consumer(claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [Retryable(ErrorCode.CAPACITY_PROTECTED)] * len(claims) if down else await acknowledge_all(claims)

    transport.script = consumer
    lean_kernel.append_new(PLACED, 64)
    settings = replace(QUICK, batch_size=16, lanes=1, breaker_failures=2, breaker_open_seconds=0.1)
    async with serving(database, (settings, transport)):
        await eventually_async(lambda: [len(call) for call in transport.calls][2:5] == [1, 1, 1])
        down = False
        first_good = len(transport.calls)
        await all_acknowledged(lean_kernel, 64)
    sizes = [len(call) for call in transport.calls]
    assert sizes[:2] == [16, 16]
    assert sizes[first_good : first_good + 4] in ([1, 2, 4, 8], [1, 1, 2, 4])


@pytest.mark.req("AMB-37")
async def test_an_unexpected_delivery_set_refuses_the_start(database: TestDatabase, lean_kernel: Kernel) -> None:
    """The expected version is compared once, at the start; nothing is claimed when another one is active."""
    lean_kernel.append_new()
    settings = replace(QUICK_PROCESS, expected_delivery_set_version="2")
    async with serving(database, (QUICK, ScriptedTransport()), settings=settings) as service:
        with pytest.raises(InvalidSetting, match="'2' is expected, active is '1'"):
            await service.task
    assert lean_kernel.count("delivery_attempt_start") == 0


@pytest.mark.req("CLM-11")
async def test_the_rate_limit_holds(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A claim takes no more than the tokens there are: a burst of one second's worth first."""
    transport = ScriptedTransport()
    lean_kernel.append_new(PLACED, 30)
    async with serving(database, (replace(QUICK, rate_per_second=20.0), transport)):
        await all_acknowledged(lean_kernel, 30)
    assert len(transport.calls[0]) == 20
    assert len(transport.calls) >= 2
