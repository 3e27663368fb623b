"""What a run came to: a line for each round, a table of faults, one line of evidence, and a file for other programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

from tests.fault.matrix.play import Round

RATE_KEPT_MIN: Final = 0.98
RATE_ROUNDS_MIN: Final = 20
"""With fewer rounds a median says little, and the rate is only shown."""
SLOWDOWN_MAX: Final = 1.2
"""On a machine busier than that the rate is only shown."""
CHANCE_MAX: Final = 1 / 200
"""A fault fails by its rate when so many of its rounds are below the bound that chance would do it less often."""
COLUMNS: Final = (
    "fault",
    "rounds",
    "events",
    "deliveries",
    "redelivered",
    "lost",
    "doubled",
    "refused",
    "recovery p50",
    "max s",
    "rate kept",
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A round that came to no verdict, with what stopped it."""

    fault: str
    seed: int
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that was played.

    Attributes:
        gaps: faults that this machine cannot do, with the reason.
    """

    rounds: Sequence[Round]
    broken: Sequence[Broken]
    gaps: dict[str, str]

    @property
    def faults(self) -> list[str]:
        """The faults that were played, in their order."""
        return list(dict.fromkeys(one.fault for one in (*self.rounds, *self.broken)))

    def of(self, fault: str) -> list[Round]:
        """The rounds of one fault."""
        return [one for one in self.rounds if one.fault == fault]

    def failures(self) -> list[str]:
        """Why the run has failed, one line for each cause; empty: it has not."""
        found = [f"{one.fault} seed {one.seed}: {text}" for one in self.rounds for text in one.failures]
        found += [f"{one.fault} seed {one.seed}: no verdict: {one.reason}" for one in self.broken]
        if not self.rounds:
            found.append("no round came to a verdict")
        return found + rate_failures(self)


def replay(fault: str, seed: int) -> str:
    """The command that plays one round again."""
    return f"make faults SEED={seed} ROUNDS=1 FAULT={fault}"


# Rates ----------------------------------------------------------------------------------------------------


def chance_of(low: int, rounds: int) -> float:
    """How often at least `low` of so many fair coins show the same side."""
    return sum(math.comb(rounds, number) for number in range(low, rounds + 1)) / 2.0**rounds


def why_rates_are_not_judged(run: Run) -> str | None:
    """Why the rates are only shown; None: they are judged."""
    if not run.rounds or min(len(run.of(fault)) for fault in run.faults) < RATE_ROUNDS_MIN:
        return f"fewer than {RATE_ROUNDS_MIN} rounds of a fault"
    slowdown = median(one.slowdown for one in run.rounds)
    if slowdown > SLOWDOWN_MAX:
        return f"others used the machine: work took {slowdown:.2f} times as long"
    return None


def rate_failures(run: Run) -> list[str]:
    """Medians over seeds below 98 %: of all rounds together, and of a fault beyond what chance explains."""
    if why_rates_are_not_judged(run) is not None:
        return []
    found: list[str] = []
    over_all = median(one.rate_kept for one in run.rounds)
    if over_all < RATE_KEPT_MIN:
        found.append(f"rate: the median round keeps {over_all:.1%} of it, not {RATE_KEPT_MIN:.0%}")
    for fault in run.faults:
        kept = [one.rate_kept for one in run.of(fault)]
        low = sum(share < RATE_KEPT_MIN for share in kept)
        if chance_of(low, len(kept)) < CHANCE_MAX:
            found.append(f"rate: {fault} keeps less than {RATE_KEPT_MIN:.0%} of it in {low} of {len(kept)} rounds")
    return found


# Text -----------------------------------------------------------------------------------------------------


def line(one: Round) -> str:
    """One round: what was planned, and what came of it."""
    state = "failed" if one.failures else "kept"
    return (
        f"{one.fault} seed={one.seed} {state} {one.seconds:.1f} s: {'; '.join(one.schedule)}"
        f" | recovery {one.recovery_seconds:.2f} of {one.recovery_bound:.2f} s,"
        f" rate {one.rate_before:.0f} → {one.rate_after:.0f}/s, drain {one.drain_seconds:.2f} s,"
        f" {one.verdict.redeliveries} redelivered, {one.stale_refused} refused"
    )


def table(run: Run) -> str:
    """A row for each fault."""
    rows = [COLUMNS, *(_row(fault, run.of(fault)) for fault in run.faults if run.of(fault))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _row(fault: str, rounds: Sequence[Round]) -> tuple[str, ...]:
    verdicts = [one.verdict for one in rounds]
    return (
        fault,
        str(len(rounds)),
        str(sum(one.events for one in verdicts)),
        str(sum(one.deliveries for one in verdicts)),
        str(sum(one.redeliveries for one in verdicts)),
        str(sum(one.lost for one in verdicts)),
        str(sum(one.doubled for one in verdicts)),
        str(sum(one.stale_refused for one in rounds)),
        f"{median(one.recovery_seconds for one in rounds):.2f}",
        f"{max(one.recovery_seconds for one in rounds):.2f}",
        f"{median(one.rate_kept for one in rounds):.1%}",
    )


def evidence(run: Run) -> dict[str, float]:
    """The sums that the last line shows."""
    verdicts = [one.verdict for one in run.rounds]
    return {
        "faults": len(run.faults),
        "rounds": len(run.rounds) + len(run.broken),
        "events": sum(one.events for one in verdicts),
        "lost": sum(one.lost for one in verdicts),
        "effects_doubled": sum(one.doubled for one in verdicts),
        "stale_settles_accepted": sum(one.stale_accepted for one in verdicts),
        "worst_recovery_s": round(max((one.recovery_seconds for one in run.rounds), default=0.0), 2),
    }


def text(run: Run) -> str:
    """Table, gaps, failures with the commands that play them again, and the line of evidence last."""
    lines = [table(run)]
    lines += [f"gap: {fault} was not played: {reason}" for fault, reason in run.gaps.items()]
    if (reason := why_rates_are_not_judged(run)) is not None:
        lines.append(f"rates are shown and not judged: {reason}")
    lines += [f"FAILED {failure}" for failure in run.failures()]
    failed = [(one.fault, one.seed) for one in run.rounds if one.failures]
    failed += [(one.fault, one.seed) for one in run.broken]
    lines += [f"play it again: {replay(fault, seed)}" for fault, seed in failed]
    lines.append("evidence: " + " ".join(f"{name}={value}" for name, value in evidence(run).items()))
    return "\n".join(lines)


def document(run: Run) -> dict[str, Any]:
    """The same for other programs."""
    return {
        "evidence": evidence(run),
        "rates_not_judged": why_rates_are_not_judged(run),
        "gaps": run.gaps,
        "failures": run.failures(),
        "faults": [
            {"fault": fault, **dict(zip(COLUMNS[1:], _row(fault, run.of(fault))[1:], strict=True))}
            for fault in run.faults
            if run.of(fault)
        ],
        "rounds": [{**asdict(one), "failures": one.failures} for one in run.rounds],
        "broken": [asdict(one) for one in run.broken],
    }
