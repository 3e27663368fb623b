"""What a person reads when a run is over."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from orbit.demo.chaos import Incident
from orbit.demo.evidence import Evidence
from orbit.demo.platform import ROLES
from orbit.demo.processes import Processes
from orbit.history.verdict import Verdict


def show(
    console: Console,
    *,
    incidents: Sequence[Incident],
    processes: Processes,
    evidence: Evidence,
    verdict: Verdict,
    seconds: float,
) -> None:
    """Print incidents, processes, the history's verdict and what is wrong, if anything is."""
    happened = Table("second", "what", "to", "effect", title="what was done to it", title_justify="left")
    for incident in incidents:
        happened.add_row(f"{incident.at_seconds:.1f}", incident.what, incident.target, incident.effect)
    console.print(happened)
    lives = Table("process", "starts", "kills", "ended by itself", title="processes", title_justify="left")
    for member in processes.members.values():
        lives.add_row(member.name, str(member.starts), str(member.kills), str(member.crashes))
    console.print(lives)
    console.print(
        f"{evidence.tasks:,} tasks became {evidence.results:,} results; {len(ROLES)} subscribers got "
        f"{evidence.deliveries:,} deliveries of them in {seconds:.0f} s, {evidence.redelivered:,} times again;\n"
        f"{evidence.met:,} of these were found in the inbox and not applied again"
    )
    kept = ", ".join(f"{one} {count:,}" for one, count in verdict.checked.items())
    clean = "every promise is kept" if verdict.holds else "[red]broken[/]"
    console.print(f"history of {verdict.lines:,} lines: {clean} (held against: {kept})")
    for violation in verdict.violations:
        console.print(f"[red]{violation.invariant}[/] {violation.subject}: {violation.detail}", markup=True)
    for defect in evidence.defects:
        console.print(f"[red]defect[/] {defect}", markup=True)
