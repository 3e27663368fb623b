"""Open exposures that people close: once, with a grant for exactly that, and with both events."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.billing import reads_settlement
from oceanway.contracts.errors import GrantConsumed, InvalidArgument, NotFound, OwnerConflict, Stale
from oceanway.contracts.events.settlement import CaseResolutionApplied
from oceanway.contracts.facts.transitions import late_settlement_case_ref
from oceanway.contracts.identity import Quad, quad_fields, quad_of
from oceanway.contracts.reads_billing import (
    READ_BILLING_SETTLEMENT_CATCH_UP_CONSUMER_RECEIPT,
    READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS,
    CatchUpReceiptQuestion,
    ExposureChainFound,
    ExposureChainQuestion,
    OwnerFactLateCommandResult,
)
from oceanway.contracts.receipts.catch_up import BillingSettlementCatchUpConsumerReceipt
from oceanway.reads.errors import ReadRefused
from seapost.model.errors import InvalidToken
from tests.kit.oceanway.billing_settlement import Billing, running_billing
from tests.kit.oceanway.billing_settlement_commands import carry_out, grant_for, late_command
from tests.kit.oceanway.reading import local_reader, new_serving

if TYPE_CHECKING:
    from oceanway.contracts.facts.transitions import LateSettlementCommandResult
    from oceanway.reads.client import Reader
    from seapost.testing.databases import TestDatabase
    from tests.kit.oceanway.billing_settlement_facts import Run

RESULT = "billing.late-settlement-command-result.committed@1"
RESOLVED = "billing.case-resolution.applied@1"


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give billing over a database of this module."""
    with running_billing(billing_database) as running:
        yield running


def exposed(billing: Billing) -> Run:
    """A run of which 3 are settled and 9 are open; the account has 7."""
    run = billing.new_run(funds="10", reserved="10")
    billing.accept(run.measure("3"))
    billing.finalize(run)
    billing.accept(run.measure("12"))
    billing.work()
    assert billing.dimension(run)["exposure_amount"] == 9
    return run


@pytest.mark.req("APP-11", "APP-12", "CASE-28", "CASE-31", "TST-07")
@pytest.mark.parametrize(("action", "settled", "waived", "available"), [("charge", 12, 0, -2), ("waive", 3, 9, 7)])
def test_a_command_closes_the_exposure_with_both_events(
    billing: Billing, action: str, settled: int, waived: int, available: int
) -> None:
    """A charge moves the wallet, a waiver does not; result and resolution name the same step."""
    run = exposed(billing)
    result = carry_out(billing, late_command(billing, run, action))
    state = billing.dimension(run)
    assert (state["settled_amount"], state["waived_amount"], state["exposure_state"]) == (settled, waived, "resolved")
    assert billing.available(run) == available
    opening, _, (first, committed), (second, resolved) = billing.events(run)[1:]
    assert (first, second) == (RESULT, RESOLVED)
    assert committed["correlation"]["causationId"] == opening[1]["eventId"]
    assert committed["aggregate"]["revision"] == result.to_revision == 2
    assert resolved["payload"]["owner"]["kind"] == "late_settlement_command_result"
    assert resolved["payload"]["caseRef"] == result.case_ref
    billing.require_balanced()


@pytest.mark.req("TST-07", "CASE-31")
def test_an_input_after_a_command_corrects_what_it_left(billing: Billing) -> None:
    """F, opening, late result, correction: what was waived is taken back first, then money is refunded."""
    run = exposed(billing)
    _ = carry_out(billing, late_command(billing, run, "waive"))
    billing.accept(run.measure("5"))
    billing.work()
    state = billing.dimension(run)
    assert (state["settled_amount"], state["waived_amount"]) == (3, 2)
    billing.accept(run.measure("1"))
    billing.work()
    billing.require_settled(run)
    assert billing.available(run) == Decimal(9)
    late, _, first, second = billing.events(run)[3:]
    assert first[1]["correlation"]["causationId"] == late[1]["eventId"]
    assert second[1]["correlation"]["causationId"] == first[1]["eventId"]
    assert first[1]["payload"]["kind"] == "adjust"


@pytest.mark.req("TST-12", "APP-11")
def test_a_command_that_was_carried_out_is_answered_from_its_result(billing: Billing) -> None:
    """The same command again, also when its grant has expired: the first result and nothing else."""
    run = exposed(billing)
    command = late_command(billing, run, "charge")
    grant = grant_for(command)
    first = carry_out(billing, command, grant)
    events = len(billing.events(run))
    assert carry_out(billing, command, grant, caller="somebody else") == first
    with pytest.raises(OwnerConflict):
        _ = carry_out(billing, command, grant_for(command))
    assert len(billing.events(run)) == events


@pytest.mark.req("TST-07")
@pytest.mark.parametrize(
    ("claims", "caller"),
    [
        ({"sub": "another"}, "serve.operations"),
        ({}, "another"),
        ({"action": "waive"}, "serve.operations"),
        ({"command_digest": "c" * 64}, "serve.operations"),
        ({"case_ref": "another"}, "serve.operations"),
        ({"expected_state_revision": 2}, "serve.operations"),
        ({"actor_workforce_principal_id": "another"}, "serve.operations"),
        ({"iat": 10, "exp": 20}, "serve.operations"),
        ({"iat": 4_000_000_000, "exp": 4_000_000_001}, "serve.operations"),
    ],
)
def test_a_grant_for_anything_else_is_refused(billing: Billing, claims: dict[str, Any], caller: str) -> None:
    """Another workload, action, command, case, revision, actor or time: nothing is written."""
    run = exposed(billing)
    command = late_command(billing, run, "charge")
    with pytest.raises(InvalidToken):
        _ = carry_out(billing, command, grant_for(command, **claims), caller=caller)
    with pytest.raises(InvalidToken):
        _ = carry_out(billing, command, grant_for(command, key=Ed25519PrivateKey.generate()))
    assert billing.dimension(run)["exposure_state"] == "open"


@pytest.mark.req("TST-07", "CASE-31")
def test_a_command_about_another_state_is_refused(billing: Billing) -> None:
    """Another revision, amount or dimension, an unknown case, and a consumed grant."""
    run, other = exposed(billing), exposed(billing)
    stale = late_command(billing, run, "charge", expected_state_revision=7)
    with pytest.raises(Stale):
        _ = carry_out(billing, stale)
    with pytest.raises(InvalidArgument):
        _ = carry_out(billing, late_command(billing, run, "charge", exposure_amount="8"))
    with pytest.raises(InvalidArgument):
        _ = carry_out(
            billing,
            late_command(billing, run, "charge", case_ref=late_settlement_case_ref(other.dimension(), 1)),
        )
    with pytest.raises(NotFound):
        _ = carry_out(billing, late_command(billing, run, "charge", case_ref="unknown"))
    command = late_command(billing, run, "charge")
    _ = carry_out(billing, command, grant_for(command, jti="only-once"))
    again = late_command(billing, other, "charge")
    with pytest.raises(GrantConsumed):
        _ = carry_out(billing, again, grant_for(again, jti="only-once"))
    with pytest.raises(Stale):
        _ = carry_out(billing, late_command(billing, run, "waive", exposure_amount="9"))
    billing.require_balanced()


def _reader(billing: Billing, workload: str) -> Reader:
    serving = new_serving("billing")
    reads_settlement.register(serving, billing.pool)
    return local_reader(serving, workload=workload)


def _question(run: Run, result: LateSettlementCommandResult, **changes: Any) -> ExposureChainQuestion:
    fields: dict[str, Any] = {
        **run.place(),
        "settlement_economic_identity": run.economic("tokens"),
        "case_ref": result.case_ref,
        "owner_fact": OwnerFactLateCommandResult(**quad_fields("late_settlement_command_result", result.quad())),
        "from_revision": 0,
        "to_revision": 2,
    }
    return ExposureChainQuestion(**{**fields, **changes})


@pytest.mark.req("CASE-28", "CASE-31")
def test_the_chain_of_an_exposure_is_read_in_order_or_not_at_all(billing: Billing) -> None:
    """Opening and result, in order; a step that is missing is not found, any other identity conflicts."""
    run = exposed(billing)
    result = carry_out(billing, late_command(billing, run, "charge"))
    reader = _reader(billing, "serve.operations")
    wrong = OwnerFactLateCommandResult(
        **quad_fields("late_settlement_command_result", Quad(result.quad().ref, "1", "jcs-sha256-v1", "d" * 64))
    )
    answers = reader.call(
        READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS,
        [
            _question(run, result),
            _question(run, result, to_revision=3),
            _question(run, result, owner_fact=wrong),
            _question(run, result, case_ref="another"),
            _question(run, result, run_id="another"),
            _question(run, result, from_revision=1),
        ],
    )
    results = [one.answer.result for one in answers]
    assert results == ["found", "not_found", "conflicting", "conflicting", "conflicting", "found"]
    found = answers[0].answer
    assert isinstance(found, ExposureChainFound)
    assert [one.kind for one in found.chain] == ["settlement_transition", "late_settlement_command_result"]
    assert [one.exposure.exposure.state for one in found.chain if one.exposure is not None] == ["open", "resolved"]
    with pytest.raises(ReadRefused):
        _ = _reader(billing, "dispatch.metering").call(
            READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS, [_question(run, result)]
        )


@pytest.mark.req("RCP-57", "RCP-58", "RCP-59", "RCP-49")
def test_a_catch_up_receipt_is_read_by_its_complete_identity(billing: Billing) -> None:
    """Found with everything right; conflicting when a digest or an identity differs; not found for another event."""
    run = billing.new_run()
    (document,) = billing.accept(run.measure("3"))
    receipt = BillingSettlementCatchUpConsumerReceipt.decode(document)
    prefix = "billing_settlement_catch_up_consumer_receipt"
    fields: dict[str, Any] = {
        **run.place(),
        **quad_fields(prefix, quad_of(receipt, prefix)),
        **receipt.event_settlement_input.model_dump(),
        "settlement_economic_identity": run.economic("tokens"),
        "event_id": receipt.event_id,
        "event_type": receipt.event_type,
        "event_schema_version": receipt.event_schema_version,
        "event_envelope_digest_algorithm_version": receipt.event_envelope_digest_algorithm_version,
        "event_envelope_sha256": receipt.event_envelope_sha256,
    }
    changes: list[dict[str, Any]] = [
        {},
        {f"{prefix}_digest": "d" * 64},
        {"event_envelope_sha256": "d" * 64},
        {"settlement_input_state_version": 2},
        {"run_id": "another"},
        {"event_id": "018f0000-0000-7000-8000-000000000000"},
    ]
    answers = _reader(billing, "dispatch.metering").call(
        READ_BILLING_SETTLEMENT_CATCH_UP_CONSUMER_RECEIPT,
        [CatchUpReceiptQuestion(**{**fields, **change}) for change in changes],
    )
    results = [one.answer.result for one in answers]
    assert results == ["found", "conflicting", "conflicting", "conflicting", "conflicting", "not_found"]


@pytest.mark.req("CASE-28", "NEG-33")
def test_the_event_of_a_case_without_its_step_is_no_event(billing: Billing) -> None:
    """What every event about money says cannot be left out."""
    run = exposed(billing)
    _ = carry_out(billing, late_command(billing, run, "waive"))
    payload = billing.events(run)[-1][1]["payload"]
    assert CaseResolutionApplied.decode(payload).run_step_id == "step-1"
    del payload["runStepId"]
    with pytest.raises(Exception, match="runStepId"):
        _ = CaseResolutionApplied.decode(payload)
