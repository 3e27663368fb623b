"""The report of a run, as a page: goals, systems beside each other, where we lose, and everything that was chosen."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from benchmarks.contest import LATENCY, LESS_IS_BETTER, WORKER_CPU, Measured
from benchmarks.entrants import RAW
from benchmarks.goals import Goal, goals
from benchmarks.orbit.chapter import chapter
from benchmarks.results import Results, median, percentile, workloads

CHART = "bench.svg"
LEGEND = (
    "Per second, medians; in brackets the part of the raw limit. Worker CPU is what the worker's own process used per "
    "delivery. Latency is from the call of append to the handler."
)
HEADS = {LATENCY: "latency, p50 / p99", WORKER_CPU: "worker CPU per delivery"}


def page(results: Results) -> str:
    """The report in Markdown."""
    parts = [
        "# Benchmark report",
        _opening(results),
        f"![Appends, drains and latency of every system]({CHART})",
        "## Goals",
        _goals(goals(results)),
        "## Beside each other",
        LEGEND,
        _systems(results),
        "## Where we lose",
        _losses(results),
        "## Many producers",
        _producers(results),
        "## Counters",
        _counters(results),
        "## Orbit",
        "Not measured." if results.orbit is None else chapter(results.orbit),
        "## Who ran, and how",
        _entrants(results.systems),
        "## Machine and server",
        _table(("what", "value"), [*results.machine.items(), *results.server.items()]),
        _failures(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(results: Results) -> str:
    settings = results.settings
    return (
        f"A {settings['name']} run, medians of {settings['repetitions']}, all systems interleaved on one server. "
        "Rates of one machine move by two from hour to hour: believe the ratios of one run, CPU time and counters. "
        "[How we measure](how-we-measure.md) says what each workload does. The rivals keep no receipts and no facts "
        "per destination; every figure of Seapost includes them."
    )


def _goals(rows: Sequence[Goal]) -> str:
    return _table(
        ("goal", "asked", "measured", ""),
        [
            (
                one.text,
                f"{'≥' if one.at_least else '≤'} {one.limit:g} {one.unit}".strip(),
                "–" if one.measured is None else f"{one.measured:.3g} {one.unit}".strip(),
                one.verdict,
            )
            for one in rows
        ],
    )


def _systems(results: Results) -> str:
    names = workloads(results)
    rows: list[tuple[str, ...]] = []
    for one in results.systems:
        if one.absent is not None and not one.figures:
            rows.append((one.entrant.name, one.absent.splitlines()[0], *[""] * (len(names) - 1)))
        else:
            rows.append((one.entrant.name, *(_cell(results, one, name) for name in names)))
    heads = [HEADS.get(name, name) for name in names]
    return _table(("system", *heads), rows)


def _cell(results: Results, one: Measured, workload: str) -> str:
    figures = one.figures.get(workload)
    if not figures:
        return ""
    if workload == LATENCY:
        return f"{statistics.median(figures):.1f} / {percentile(figures, 99):.1f} ms"
    if workload == WORKER_CPU:
        return f"{statistics.median(figures):.0f} µs"
    rate, limit = statistics.median(figures), results.median(RAW, workload)
    return f"{rate:,.0f}" + (f" ({rate / limit:.2f})" if limit else "")


def losses(results: Results) -> list[tuple[str, str, float, str, float]]:
    """Where a rival beats our best form: workload, rival, its figure, our form, our figure."""
    found: list[tuple[str, str, float, str, float]] = []
    for workload in workloads(results):
        slower = workload in LESS_IS_BETTER
        ours = [
            (value, one.entrant.name)
            for one in results.systems
            if one.entrant.target.startswith("seapost") and one.entrant.drains
            if (value := median(one, workload)) is not None
        ]
        if not ours:
            continue
        best, form = min(ours) if slower else max(ours)
        for one in results.systems:
            value = median(one, workload) if one.entrant.is_rival else None
            if value is not None and (value < best if slower else value > best):
                found.append((workload, one.entrant.name, value, form, best))
    return found


def _losses(results: Results) -> str:
    rows = [
        (workload, rival, f"{theirs:,.4g}", f"{ours:,.4g} ({form})", f"{max(theirs, ours) / min(theirs, ours):.2f} ×")
        for workload, rival, theirs, form, ours in losses(results)
    ]
    if not rows:
        return "No rival beat our best form in any workload of this run."
    return "Every row where a rival's median is better than our best form.\n\n" + _table(
        ("workload", "rival", "it", "we", "ahead by"), rows
    )


def _producers(results: Results) -> str:
    found = results.producers
    if found is None:
        return "Not measured."
    rows = [
        ("nobody notifies", f"{found.never:,.0f}", "1.00"),
        ("as it ships, nobody asleep", f"{found.shipped:,.0f}", f"{found.shipped / found.never:.2f}"),
        ("as it ships, a dispatcher asleep all the time", f"{found.asleep:,.0f}", f"{found.asleep / found.never:.2f}"),
    ]
    return _table(("32 clients, 1 event per transaction", "events/s", "×"), rows)


def _counters(results: Results) -> str:
    from benchmarks.counters import COUNTERS  # noqa: PLC0415 - the report of a run that has none needs no server

    if results.counters is None:
        return "Not measured."
    return _table(("counter", "value"), [(one.unit, f"{results.counters[one.name]:,.4g}") for one in COUNTERS])


def _entrants(systems: Iterable[Measured]) -> str:
    return _table(
        ("system", "versions", "settings"),
        [
            (
                one.entrant.name,
                ", ".join(f"{name} {version}" for name, version in one.versions.items()),
                one.settings if one.absent is None else one.absent.splitlines()[0],
            )
            for one in systems
        ],
    )


def _failures(results: Results) -> str:
    if not results.failures:
        return ""
    return "## Not measured\n\n" + _table(("what", "why"), results.failures.items())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)
