"""Plays the matrix: `python -m tests.fault.matrix --seed 1 --rounds 20 --fault half-open` (`make faults`).

The rounds of a fault have the seeds `seed`, `seed + 1` and so on. Writes `build/faults.json`; ends with 1 unless every
round has kept everything.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tests.fault.matrix import report
from tests.fault.matrix.fault import Fault
from tests.fault.matrix.faults import BY_NAME, FAULTS
from tests.fault.matrix.play import Round, play
from tests.fault.matrix.report import Broken, Run
from tests.fault.matrix.servers import Servers
from tests.kit.processes import Nursery
from tests.kit.tree import ROOT

OUTPUT = ROOT / "build" / "faults.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and report; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault.matrix", description="Play the fault matrix.")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first round of each fault")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each fault")
    parser.add_argument("--fault", action="append", choices=sorted(BY_NAME), help="this one only; may be repeated")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the results go as JSON")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    kinds = [BY_NAME[name] for name in options.fault] if options.fault else list(FAULTS)
    seeds = range(options.seed, options.seed + options.rounds)
    signal.signal(signal.SIGTERM, _leave)
    run = _play_all(kinds, seeds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report.document(run), indent=1) + "\n", encoding="utf-8")
    _say(report.text(run))
    return 1 if run.failures() else 0


def _play_all(kinds: Sequence[type[Fault]], seeds: Sequence[int]) -> Run:
    rounds: list[Round] = []
    broken: list[Broken] = []
    gaps: dict[str, str] = {}
    with Nursery() as nursery, Servers() as servers, tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            if (reason := kind.gap()) is not None:
                gaps[kind.name] = reason
                _say(f"{kind.name} skipped: {reason}")
                continue
            for seed in seeds:
                place = Path(folder) / f"{kind.name}-{seed}"
                place.mkdir()
                try:
                    one = play(kind, seed, servers, nursery, place)
                except Exception as error:  # noqa: BLE001 - whatever it is, the round has failed and the rest goes on
                    broken.append(Broken(kind.name, seed, f"{type(error).__name__}: {error}"))
                    _say(f"{kind.name} seed={seed} came to no verdict: {error}\n{report.replay(kind.name, seed)}")
                    continue
                rounds.append(one)
                _say(report.line(one))
                if one.failures:
                    _say("\n".join([*one.failures, report.replay(kind.name, seed)]))
    return Run(rounds, broken, gaps)


def _leave(number: int, _frame: FrameType | None) -> None:
    """End in order, so that no server and no mounted disk stays behind."""
    sys.exit(128 + number)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - it reports to the terminal


if __name__ == "__main__":
    sys.exit(main())
