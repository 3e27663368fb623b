"""The fence: each verb needs all four coordinates, and after recovery the old worker has none (CLM-05, CLM-09)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from seapost.model.delivery import Claim, Fence
from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel

Verb = Callable[..., object]

VERBS: dict[str, Verb] = {
    "acknowledge": Kernel.acknowledge,
    "retry": Kernel.retry,
    "quarantine": Kernel.quarantine,
    "renew": Kernel.renew,
}

STATE = (
    "select (select jsonb_agg(to_jsonb(d) order by d.event_id, d.destination) from seapost.outbox_deliveries as"
    " d)::text,"
    " (select count(*) from seapost.outbox_delivery_attempt_starts),"
    " (select count(*) from seapost.outbox_delivery_attempt_finishes)"
)


def _with(
    claim: Claim, *, event_id: UUID | None = None, attempt_id: int | None = None, token: UUID | None = None
) -> Claim:
    fence = claim.fence
    return replace(claim, fence=Fence(event_id or fence.event_id, attempt_id or fence.attempt_id, token or fence.token))


def _refuses(verb: str, kernel: Kernel, claim: Claim, destination: str = BILLING) -> None:
    before = kernel.row(STATE)
    answer = VERBS[verb](kernel, claim, destination=destination)
    assert answer in (set(), [(claim.fence.event_id, claim.fence.attempt_id, "stale")])
    assert kernel.row(STATE) == before


@pytest.mark.req("NEG-43", "CLM-05", "TST-33")
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_needs_all_four_coordinates(kernel: Kernel, verb: str) -> None:
    """With any one of destination, event, attempt and token wrong, nothing changes and the answer says so."""
    kernel.append_new(PLACED, 1)
    claim = kernel.claim_one()
    kernel.append_new(SHIPPED)
    other = kernel.claim_one()
    _refuses(verb, kernel, claim, destination=SEARCH)
    _refuses(verb, kernel, claim, destination="nowhere")
    _refuses(verb, kernel, _with(claim, event_id=other.fence.event_id))
    _refuses(verb, kernel, _with(claim, event_id=builders.new_event_id()))
    _refuses(verb, kernel, _with(claim, attempt_id=other.fence.attempt_id))
    _refuses(verb, kernel, _with(claim, attempt_id=claim.fence.attempt_id + 10_000))
    _refuses(verb, kernel, _with(claim, token=other.fence.token))
    _refuses(verb, kernel, _with(claim, token=uuid4()))


@pytest.mark.req("NEG-43", "CLM-09", "CLM-07", "TST-29", "TST-30", "F14")
@pytest.mark.parametrize("verb", VERBS)
def test_after_recovery_the_old_worker_can_do_nothing(kernel: Kernel, clock: Clock, verb: str) -> None:
    """Neither before nor after the next claim does a recovered attempt finish twice or touch the new owner's lease."""
    kernel.append_new()
    old = kernel.claim_one(lease=timedelta(seconds=1))
    clock.advance(2)
    assert kernel.recover() == {BILLING: 1}
    _refuses(verb, kernel, old)
    new = kernel.claim_one()
    assert (new.attempt_number, new.lost_count) == (2, 1)
    _refuses(verb, kernel, old)
    assert kernel.acknowledge(new) == []
    _refuses(verb, kernel, old)


@pytest.mark.req("NEG-43", "CLM-09", "TST-31", "DLV-15")
@pytest.mark.parametrize("second", VERBS)
@pytest.mark.parametrize("first", ["acknowledge", "retry", "quarantine"])
def test_a_finished_attempt_is_finished_for_good(kernel: Kernel, first: str, second: str) -> None:
    """After one finish every further word of that attempt is stale, whatever verb it uses."""
    kernel.append_new()
    claim = kernel.claim_one()
    assert VERBS[first](kernel, claim) == []
    _refuses(second, kernel, claim)


@pytest.mark.req("SET-35", "DLV-11", "NEG-43")
def test_the_claim_of_one_destination_never_settles_another(kernel: Kernel) -> None:
    """Both destinations of one event hold leases; the fence of one is worth nothing at the other."""
    kernel.append_new(SHIPPED)
    billing, search = kernel.claim_one(BILLING), kernel.claim_one(SEARCH)
    for verb in VERBS:
        _refuses(verb, kernel, search, destination=BILLING)
        _refuses(verb, kernel, billing, destination=SEARCH)
    assert kernel.acknowledge(search) == []
    assert kernel.status(billing.fence.event_id, BILLING) == "leased"


@pytest.mark.req("NEG-43", "CLM-05")
def test_a_batch_names_a_stale_word_about_an_event_beside_a_good_one(kernel: Kernel) -> None:
    """An old and the current attempt of one event in the same call: the current one counts, the old one is named."""
    kernel.append_new()
    old = kernel.claim_one()
    kernel.retry(old)
    new = kernel.claim_one()
    assert kernel.acknowledge(old, new) == [(old.fence.event_id, old.fence.attempt_id, "stale")]
    assert kernel.status(new.fence.event_id) == "acknowledged"


@pytest.mark.req("NEG-43", "CLM-05")
@pytest.mark.parametrize("verb", ["acknowledge", "retry", "quarantine"])
def test_the_attempt_of_another_event_in_the_same_call_is_refused_and_named(kernel: Kernel, verb: str) -> None:
    """An attempt belongs to its event: beside another one, whose own word counts in the same call, it is stale."""
    kernel.append_new(PLACED, 2)
    good, bad = kernel.claim()
    wrong = _with(bad, attempt_id=good.fence.attempt_id)
    assert VERBS[verb](kernel, good, wrong) == [(bad.fence.event_id, good.fence.attempt_id, "stale")]
    assert kernel.status(bad.fence.event_id) == "leased"
    assert kernel.status(good.fence.event_id) != "leased"


@pytest.mark.req("NEG-43")
def test_a_missing_coordinate_is_refused_and_named(kernel: Kernel) -> None:
    """A null event, attempt or token matches nothing, and the refusal is not lost among good ones."""
    kernel.append_new(PLACED, 2)
    good, bad = kernel.claim()
    rows = kernel.rows(
        "select event_id, attempt_id, result from seapost.delivery_quarantine_v1("
        "%s, %s, array[%s, null]::bigint[], array[%s, %s], array['schema_invalid', 'schema_invalid'],"
        " array[null, null]::text[])",
        BILLING,
        [good.fence.event_id, bad.fence.event_id],
        good.fence.attempt_id,
        good.fence.token,
        bad.fence.token,
    )
    assert rows == [(bad.fence.event_id, None, "stale")]
    assert kernel.status(bad.fence.event_id) == "leased"
