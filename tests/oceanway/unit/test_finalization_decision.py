"""What a finalization work decides from answers: only those that are exactly what it asked for (REF-37, REF-38)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from oceanway.billing.finalization.claimed import ClaimedWork
from oceanway.billing.finalization.deciding import Closing, Decider, Later
from oceanway.billing.finalization.schedule import first_generation
from oceanway.billing.store_finalization import ClaimedRow, PriceKey
from oceanway.contracts.identity import quad_fields
from oceanway.contracts.reads_execution import RunFinalizationFound
from oceanway.contracts.reads_metering import SettlementInputFound
from seapost.contracts.content_addressed import Quad
from tests.kit.oceanway.billing_finalization_peers import Peers
from tests.kit.oceanway.billing_finalization_runs import ALGORITHM, DIGEST, MOMENT, Run, new_run

PRICES = {PriceKey("prices", "1", "token", "EUR"): Decimal("0.25")}


class Changing:
    """A reader that changes what one kind of answer holds."""

    def __init__(self, peers: Peers, change: Callable[[Any], Any]) -> None:
        self._peers = peers
        self._change = change

    def call(self, operation: Any, arguments: Sequence[Any]) -> list[Any]:  # noqa: ANN401 - every operation
        """See `Reader`."""
        return [
            one.model_copy(update={"answer": self._change(one.answer)})
            for one in self._peers.call(operation, arguments)
        ]


def a_run() -> Run:
    """A run with two attempts, of which each has an input of 4."""
    run = new_run({"step-1": ("tokens",)}, {"attempt-0": "step-1", "attempt-1": "step-1"}, account="account")
    for attempt in run.attempts:
        run.measure(attempt, "tokens", "4")
    return run


def a_work(run: Run) -> ClaimedWork:
    """The work of a closed run that knows every input."""
    scheduled = first_generation(run.manifest, created_at=MOMENT)
    row = ClaimedRow(
        work=scheduled.work.canonical(),
        trigger=scheduled.trigger.canonical(),
        subject={
            **{name: value for name, value in run.manifest.to_json().items() if name in SUBJECT},
            "reservedAmount": "10",
            "coordinatorReceipt": {
                f"billingFinalizationCoordinatorConsumerReceipt{part}": value
                for part, value in (
                    ("Ref", "r"),
                    ("SchemaVersion", "1"),
                    ("DigestAlgorithmVersion", ALGORITHM),
                    ("Digest", DIGEST),
                )
            },
        },
        run_admission_manifest=run.manifest.canonical(),
        currency="EUR",
        fence_revision=2,
        attempt_number=1,
        fencing_token=7,
        reconciliation_generation=0,
        previous_identity=None,
    )
    closure = {
        "state": "applied",
        "closureEventId": "01a2303f-b0f7-7346-b198-14341efe3396",
        "eventEnvelopeDigestAlgorithmVersion": ALGORITHM,
        "eventEnvelopeSha256": DIGEST,
        **{
            f"runExecutionFinalization{part}": value
            for part, value in zip(
                ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest"),
                quad_values(run.closure.quad()),
                strict=True,
            )
        },
    }
    marks = [
        {
            "runStepId": one.run_step_id,
            "executionAttemptId": one.execution_attempt_id,
            "chargeDimensionKey": one.charge_dimension_key,
            "ref": one.quad().ref,
            "schemaVersion": "1",
            "digestAlgorithmVersion": ALGORITHM,
            "digest": one.quad().digest,
            "stateVersion": one.settlement_input_state_version,
        }
        for chain in run.inputs.values()
        for one in chain[-1:]
    ]
    work = ClaimedWork.of(row)
    return replace(work, trigger={**work.trigger, "closureWatermark": closure, "settlementWatermarks": marks})


SUBJECT = {"tenantKind", "tenantId", "workspaceId", "projectId", "billingAccountId", "billingReservationId", "runId"}


def quad_values(quad: Quad) -> tuple[str, ...]:
    """The four values of a quad."""
    return tuple(quad_fields("x", quad).values())


def decided(run: Run, change: Callable[[Any], Any], work: ClaimedWork | None = None) -> Any:  # noqa: ANN401 - any ending
    """What becomes of the run's work when answers are changed so."""
    peers = Peers(runs={run.run_id: run})
    decider = Decider(Changing(peers, change), lambda _: PRICES, gate=False)
    [ending] = decider.decide([work or a_work(run)], MOMENT)
    return ending


@pytest.mark.req("REF-37", "REF-38", "FIN-15")
def test_exact_answers_are_settled() -> None:
    """Two inputs of 4 at a quarter cost 2; the event repeats the fact."""
    ending = decided(a_run(), lambda answer: answer)
    assert isinstance(ending, Closing)
    assert (ending.fact.settled_amount, ending.fact.released_amount) == ("2", "8")
    assert len(ending.opening.works) == len(ending.opening.dimension_states) == 2


@pytest.mark.req("REF-37", "REF-38", "FIN-15")
def test_answers_about_anything_else_decide_nothing() -> None:
    """Another closure, attempt set or settlement input than was asked for: the work is tried again."""
    run, other = a_run(), a_run()
    newest = run.inputs["attempt-0", "tokens"][-1]
    work = a_work(run)
    run.measure("attempt-0", "tokens", "9")
    newer = run.inputs["attempt-0", "tokens"][-1]

    def of(kind: type, **fields: Any) -> Callable[[Any], Any]:
        return lambda answer: answer.model_copy(update=fields) if isinstance(answer, kind) else answer

    for change, reason in (
        (of(RunFinalizationFound, fact=other.closure), "closure_differs"),
        (of(RunFinalizationFound, attempt_set_manifest=other.attempt_set), "closure_differs"),
        (of(SettlementInputFound, snapshot=newest), "settlement_input_differs"),
        (of(SettlementInputFound, snapshot=newer), "settlement_input_differs"),
    ):
        ending = decided(run, change, work)
        assert isinstance(ending, Later)
        assert ending.reason == reason


@pytest.mark.req("REF-37")
def test_an_attempt_of_a_step_that_was_not_admitted_is_not_settled() -> None:
    """The admission says which steps and dimensions there are (REF-17)."""
    run = a_run()
    ending = decided(run, lambda answer: answer, replace(a_work(run), steps={"step-2": ["tokens"]}))
    assert isinstance(ending, Later)
    assert ending.reason == "step_not_admitted"
