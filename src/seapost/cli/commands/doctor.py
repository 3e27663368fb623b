"""`seapost doctor`: is this database what the release installs, and can its promises hold on this server?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import takewhile
from typing import Annotated

import psycopg
import typer

from seapost.cli.databases import Session, examining
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import ConfigOption, ConsumerOption, DsnOption, JsonOption
from seapost.cli.output import Block, Output, Table
from seapost.cli.settings import Settings, load_settings
from seapost.database.doctor import Examination, Finding, FindingKind, examine
from seapost.database.doctor.finding import spoken
from seapost.dispatcher.settings import DestinationSettings
from seapost.store import status as store

DEFECTS_SHOWN = 100
CHARACTERS_SHOWN = 120
CHARACTERS_BEFORE = 30


def doctor(
    audit: Annotated[
        bool,
        typer.Option(
            "--audit/--no-audit", help="Also look for facts that contradict each other. This reads every row."
        ),
    ] = True,
    dispatchers: Annotated[
        int, typer.Option("--dispatchers", min=1, max=10_000, help="Dispatcher processes that work on the database.")
    ] = 1,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Compare a database with what this release installs, and say exactly what differs.

    Looks at every table, column, constraint, index, trigger, function, view, sequence, grant and role, at the history
    of migrations, and at settings of the server under which a promise cannot hold. It changes nothing. The exit code
    is 1 when anything drifted, 7 when facts contradict each other or a promise cannot hold, 8 when the role may not see
    everything, else 0; warnings do not change it.
    """
    section = "consumer" if consumer else "database"
    settings = load_settings(file=config, flags={(section, "dsn"): dsn})
    database = settings.consumer if consumer else settings.database
    output = Output(as_json=as_json)

    async def look() -> tuple[str, Examination, list[Finding]]:
        async with examining(database, section) as connection:
            with output.progress("comparing the catalogs"):
                examination = await examine(
                    connection,
                    batch=_settled_at_once(settings),
                    dispatchers=dispatchers,
                    behind_pooler=database.behind_pooler,
                )
            with output.progress("reading every fact") if audit else output.quiet():
                defects = await _audit(connection) if audit else []
            info = connection.info
            name = f"{info.dbname} at {info.host or 'a local socket'}:{info.port}"
            return name, examination, defects

    name, examination, defects = asyncio.run(look())
    findings = [*examination.findings, *defects]
    output.emit(_document(name, examination, findings), *_blocks(examination, findings))
    return exit_code(findings)


def _settled_at_once(settings: Settings) -> int:
    """Deliveries that one dispatcher settles at a time: one batch of each destination."""
    batches = [one.worker.batch_size for one in settings.destinations.values()]
    return sum(batches) or DestinationSettings(name="any").batch_size


async def _audit(connection: Session) -> list[Finding]:
    """What `audit_places` finds; a view that is missing or another is told as drift already."""
    try:
        defects = await store.audit(connection, limit=DEFECTS_SHOWN)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        return []
    except psycopg.errors.InsufficientPrivilege:
        text = "this role may not read audit_places, so nothing is known about facts that contradict each other"
        return [Finding(FindingKind.UNSEEN, "facts", text)]
    findings: list[Finding] = []
    for one in defects:
        destination = "" if one.destination is None else f", destination {one.destination}"
        subject = f"event {one.event_id}{destination}"
        findings.append(Finding(FindingKind.DEFECT, subject, f"{subject}: {one.defect}"))
    if len(defects) == DEFECTS_SHOWN:
        findings.append(
            Finding(FindingKind.DEFECT, "facts", f"only the first {DEFECTS_SHOWN} contradictions are shown")
        )
    return findings


def exit_code(findings: Sequence[Finding]) -> ExitCode:
    """What the command ends with; the gravest finding decides, and warnings do not count."""
    kinds = {one.kind for one in findings}
    if FindingKind.DRIFT in kinds:
        return ExitCode.FAILED
    if FindingKind.DEFECT in kinds:
        return ExitCode.CHECK_FAILED
    return ExitCode.PARTIAL if FindingKind.UNSEEN in kinds else ExitCode.DONE


def _document(database: str, examination: Examination, findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "database": database,
        "guardLevel": examination.guard_level,
        "compared": examination.objects,
        "clean": not any(one.kind is not FindingKind.WARNING for one in findings),
        "findings": [one.to_json() for one in findings],
    }


def _blocks(examination: Examination, findings: Sequence[Finding]) -> list[Block]:
    blocks: list[Block] = []
    differences = [one for one in findings if one.kind is FindingKind.DRIFT]
    if differences:
        rows = [(one.subject, one.about, *_sides(one)) for one in differences]
        blocks += [Table(("drift in", "of", "should be", "is"), rows), ""]
    blocks += [f"{one.kind}: {one.text}" for one in findings if one.kind is not FindingKind.DRIFT]
    counts = ", ".join(f"{sum(one.kind is kind for one in findings)} {kind}" for kind in FindingKind)
    blocks.append(f"compared {examination.objects} parts at guard level {examination.guard_level}: {counts}")
    return blocks


def _sides(finding: Finding) -> tuple[str, str]:
    """Both sides of a difference on one line each; long ones from shortly before where they part."""
    expected, found = (" ".join(spoken(side).split()) for side in (finding.expected, finding.found))
    if max(len(expected), len(found)) > CHARACTERS_SHOWN:
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(expected, found, strict=False)))
        start = max(alike - CHARACTERS_BEFORE, 0)
        expected, found = (_from(side, start) for side in (expected, found))
    return expected, found


def _from(side: str, start: int) -> str:
    end = start + CHARACTERS_SHOWN
    return f"{'…' if start else ''}{side[start:end]}{'…' if len(side) > end else ''}"
