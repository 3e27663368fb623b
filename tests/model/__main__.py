"""`make model`: explores every state of every world, then every broken twin (seconds are of the processor).
Exit code 1 when a rule is broken or a twin goes unnoticed.

A twin's shortest counterexample is printed by `python -m tests.model --show NAME`, or `--show all`.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.model.explore import explore
from tests.model.worlds import Twin, sound, twins


def main() -> int:
    """Explore, print, and judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description="Explore every state of the model.")
    parser.add_argument("--small", action="store_true", help="smaller worlds, as in the test suite")
    parser.add_argument("--show", metavar="TWIN", help="print the counterexample of a broken twin, or of all")
    arguments = parser.parse_args()
    broken = [twin for twin in twins() if arguments.show in {"all", twin.name}]
    if arguments.show and not broken:
        parser.error(f"no such twin; there are {', '.join(twin.name for twin in twins())}")
    if broken:
        return sum(_show(twin) for twin in broken)
    failures = _explore_worlds(small=arguments.small) + _explore_twins()
    return 1 if failures else 0


def _explore_worlds(*, small: bool) -> int:
    states = transitions = failures = 0
    for world in sound(small=small):
        started = time.process_time()
        result = explore(world)
        states += result.states
        transitions += result.transitions
        seconds = time.process_time() - started
        _say(
            f"{world.name}: {result.states:,} states, {result.transitions:,} transitions, {seconds:.1f} s of processor"
        )
        if result.violation is not None:
            failures += 1
            _say(str(result.violation))
    _say(f"evidence: states={states} transitions={transitions} broken_rules={failures}")
    return failures


def _explore_twins() -> int:
    failures = 0
    for twin in twins():
        violation = twin.explore().violation
        caught = violation is not None and violation.rule == twin.rule
        failures += not caught
        steps = 0 if violation is None else len(violation.steps)
        verdict = f"caught after {steps} steps" if caught else "NOT CAUGHT"
        _say(f"twin {twin.name}: {twin.without}: {verdict}")
    _say(f"evidence: twins={len(twins())} caught={len(twins()) - failures}")
    return failures


def _show(twin: Twin) -> int:
    violation = twin.explore().violation
    _say(f"twin {twin.name}: {twin.without}\n{violation}\n")
    return violation is None


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
