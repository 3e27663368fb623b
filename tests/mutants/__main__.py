"""`make mutants`: plants every bug of the catalogue in a copy of the source and runs the tests that must notice it.

First the same tests must pass on an unchanged copy. Exit code 0 only when every mutant is killed. `MUTANTS` may name
some of them, separated by commas.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from seapost.database.embedded import EmbeddedServer
from tests.mutants.catalogue import ROOT, SOURCE, Mutant, load
from tests.mutants.verdict import Verdict, judge

REPORT: Final = ROOT / "build" / "mutants.json"
COLOURS: Final = {"killed": "green", "survived": "red", "broken": "magenta"}


def main() -> int:
    """Run what the arguments name; print one row per mutant and write `build/mutants.json`."""
    options = _arguments()
    mutants = [mutant for mutant in load() if not options.only or mutant.name in options.only]
    if unknown := set(options.only) - {mutant.name for mutant in mutants}:
        print(f"no such mutant: {', '.join(sorted(unknown))}", file=sys.stderr)  # noqa: T201
        return 2
    console = Console(width=150)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seapost-mutants-")))
        work.chmod(0o755)  # as root, the server runs as a user of its own and must get in
        server = stack.enter_context(EmbeddedServer(work / "data", settings={"fsync": "off", "max_connections": "200"}))
        baseline = _baseline(work, server.dsn(), mutants)
        if baseline.word != "survived":
            console.print(f"the tests do not pass on the unchanged source: {baseline.killer}\n{baseline.output}")
            return 1
        verdicts = _run(work, server.dsn(), mutants, options.jobs)
    _report(console, verdicts, verbose=options.verbose)
    return 0 if all(verdict.word == "killed" for _, verdict in verdicts) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=lambda text: [name for name in text.split(",") if name], default=[])
    parser.add_argument("--jobs", type=int, default=2, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--verbose", action="store_true", help="show how each mutant was noticed")
    return parser.parse_args()


def _copy(work: Path, name: str) -> Path:
    target = work / name / "src"
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def _baseline(work: Path, dsn: str, mutants: Iterable[Mutant]) -> Verdict:
    tests = sorted({killer for mutant in mutants for killer in mutant.killers})
    return judge(_copy(work, "unchanged"), tests, dsn, work / "unchanged.xml")


def _run(work: Path, dsn: str, mutants: list[Mutant], jobs: int) -> list[tuple[Mutant, Verdict]]:
    def one(mutant: Mutant) -> Verdict:
        source = _copy(work, mutant.name)
        mutant.apply(source)
        verdict = judge(source, mutant.killers, dsn, work / f"{mutant.name}.xml")
        progress.advance(task)
        return verdict

    with Progress(transient=True) as progress, ThreadPoolExecutor(jobs) as threads:
        task = progress.add_task("hunting mutants", total=len(mutants))
        return list(zip(mutants, threads.map(one, mutants), strict=True))


def _report(console: Console, verdicts: list[tuple[Mutant, Verdict]], *, verbose: bool) -> None:
    table = Table("mutant", "what it breaks", "verdict", "killed by", "s")
    for mutant, verdict in verdicts:
        word = f"[{COLOURS[verdict.word]}]{verdict.word}[/]"
        table.add_row(mutant.name, mutant.breaks, word, verdict.killer.removeprefix("tests."), f"{verdict.seconds:.0f}")
    console.print(table)
    for mutant, verdict in verdicts:
        if verbose or verdict.word != "killed":
            console.rule(f"{mutant.name}: {verdict.word}")
            console.print(verdict.output, markup=False)
    REPORT.parent.mkdir(exist_ok=True)
    rows = [
        {"name": mutant.name, "breaks": mutant.breaks, "verdict": verdict.word, "killer": verdict.killer}
        for mutant, verdict in verdicts
    ]
    REPORT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    killed = sum(verdict.word == "killed" for _, verdict in verdicts)
    console.print(f"evidence: mutants={len(verdicts)} killed={killed} survived_or_broken={len(verdicts) - killed}")


if __name__ == "__main__":
    sys.exit(main())
