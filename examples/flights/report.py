"""The report: what was done to the run, what came of it, and the consumers' tables beside the file's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from examples.flights.chaos import Incident
from examples.flights.evidence import Evidence
from examples.flights.expected import Expected
from examples.flights.facts import Facts
from examples.flights.tables import Mileage, Punctuality

INCIDENTS_SHOWN_MAX: Final = 40
AIRCRAFT_SHOWN: Final = 5
FINDINGS_SHOWN_MAX: Final = 25
SPARKS: Final = "▁▂▃▄▅▆▇█"
SPARKS_MAX: Final = 58


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """What became of one process: how often it was started, killed, and ended by itself."""

    name: str
    starts: int
    kills: int
    crashes: int


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the report speaks of."""

    expected: Expected
    facts: Facts
    evidence: Evidence
    incidents: Sequence[Incident]
    processes: Sequence[ProcessRecord]
    seconds: float


def show(console: Console, run: Run) -> None:
    """Print the report; the evidence line is not part of it."""
    for part in (
        _incidents(run.incidents),
        _processes(run.processes),
        _attempts(run.facts),
        _pace(run),
        _punctuality(run),
        _mileage(run),
        _verdict(run),
    ):
        console.print()
        console.print(part)
    console.print()


def _incidents(incidents: Sequence[Incident]) -> Table:
    table = _table("What was done to it", "second", "what", "to whom", "effect", right=("second",))
    shown = incidents[:INCIDENTS_SHOWN_MAX]
    for incident in shown:
        table.add_row(f"{incident.at_seconds:.1f}", incident.what, incident.target, incident.effect)
    if len(incidents) > len(shown):
        table.add_row("…", f"{len(incidents) - len(shown)} more", "", "")
    return table


def _processes(processes: Sequence[ProcessRecord]) -> Table:
    table = _table(
        "The processes",
        "process",
        "started",
        "killed",
        "ended by itself",
        right=("started", "killed", "ended by itself"),
    )
    for process in processes:
        table.add_row(process.name, f"{process.starts}", f"{process.kills}", f"{process.crashes}")
    return table


def _attempts(facts: Facts) -> Table:
    table = _table("How the attempts ended", "ending", "attempts", right=("attempts",))
    for ending, count in facts.endings.items():
        table.add_row(ending, f"{count:,}")
    return table


def _pace(run: Run) -> Group:
    facts, pace = run.facts, run.facts.pace
    met = sum(receipts.met_by_receipt for receipts in facts.receipts.values())
    lines = [
        (
            f"{facts.events:,} events, {facts.deliveries:,} deliveries, "
            f"{facts.starts - facts.deliveries:,} redeliveries in {run.seconds:.1f} s"
        ),
        f"{met:,} of these found the receipt of an earlier attempt: not applied again",
        (
            f"{facts.taken_back:,} events were rolled back on purpose after their append: "
            f"{facts.taken_back_seen or 'none'} was ever seen"
        ),
    ]
    if pace.first and pace.last and pace.per_second:
        seconds = max((pace.last - pace.first).total_seconds(), 0.001)
        lines.append(
            f"{facts.acknowledged / seconds:,.0f} acknowledged per second, "
            f"{max(pace.per_second.values()):,} in the best second"
        )
    if pace.latencies:
        half, most, worst = (latency.total_seconds() for latency in pace.latencies)
        lines.append(f"append to acknowledgement: half in {half:.2f} s, 99 % in {most:.2f} s, all in {worst:.2f} s")
    if pace.per_second:
        lines.append(f"second by second  {_spark(pace.per_second)}")
    return Group(Text("What came of it", style="bold"), *(Text(f"  {line}") for line in lines))


def _spark(counts: dict[int, int]) -> str:
    """A bar for each second; long runs are drawn together."""
    length = max(counts) + 1
    width = max(1, -(-length // SPARKS_MAX))
    sums = [sum(counts.get(start + step, 0) for step in range(width)) for start in range(0, length, width)]
    top = max(sums) or 1
    return "".join(SPARKS[round(value / top * (len(SPARKS) - 1))] for value in sums)


def _punctuality(run: Run) -> Table:
    columns = ("flights", "on time", "delay minutes", "cancelled")
    table = _table("Punctuality by carrier", "carrier", *columns, "file says", right=columns)
    mine, theirs = run.facts.tables.punctuality, run.expected.tables.punctuality
    for carrier in sorted({*mine, *theirs}):
        is_now, must_be = mine.get(carrier, Punctuality()), theirs.get(carrier, Punctuality())
        table.add_row(
            carrier,
            _cell(is_now.flights, must_be.flights),
            _cell(is_now.on_time, must_be.on_time),
            _cell(is_now.delay_minutes, must_be.delay_minutes),
            _cell(is_now.cancelled, must_be.cancelled),
            _same(same=is_now == must_be),
        )
    return table


def _mileage(run: Run) -> Table:
    mine, theirs = run.facts.tables.mileage, run.expected.tables.mileage
    table = _table(
        "Miles by aircraft",
        "aircraft",
        "flights",
        "miles",
        "file says",
        right=("flights", "miles"),
    )
    wrong = [tailnum for tailnum in sorted({*mine, *theirs}) if mine.get(tailnum) != theirs.get(tailnum)]
    farthest = sorted(theirs, key=lambda tailnum: -theirs[tailnum].miles)
    shown = [*wrong[:AIRCRAFT_SHOWN], *(tailnum for tailnum in farthest if tailnum not in wrong)][:AIRCRAFT_SHOWN]
    for tailnum in shown:
        is_now, must_be = mine.get(tailnum, Mileage()), theirs.get(tailnum, Mileage())
        table.add_row(
            tailnum,
            _cell(is_now.flights, must_be.flights),
            _cell(is_now.miles, must_be.miles),
            _same(same=is_now == must_be),
        )
    table.add_row(
        f"all {len(theirs):,}",
        _cell(sum(row.flights for row in mine.values()), sum(row.flights for row in theirs.values())),
        _cell(sum(row.miles for row in mine.values()), sum(row.miles for row in theirs.values())),
        _same(same=not wrong, otherwise=f"{len(wrong):,} differ"),
        style="bold",
    )
    return table


def _verdict(run: Run) -> Group:
    evidence = run.evidence
    if evidence.holds:
        return Group(Text("Every flight was counted, and none was counted twice.", style="bold green"))
    shown = evidence.findings[:FINDINGS_SHOWN_MAX]
    more = len(evidence.findings) - len(shown)
    return Group(
        Text("This must not be:", style="bold red"),
        *(Text(f"  {finding}", style="red") for finding in shown),
        *([Text(f"  … and {more} more", style="red")] if more else []),
    )


def _table(title: str, *columns: str, right: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _cell(is_now: int, must_be: int) -> Text:
    if is_now == must_be:
        return Text(f"{is_now:,}")
    return Text(f"{is_now:,} ≠ {must_be:,}", style="bold red")


def _same(*, same: bool, otherwise: str = "otherwise") -> Text:
    return Text("the same", style="green") if same else Text(otherwise, style="bold red")
