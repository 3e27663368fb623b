"""The process of one system: `python -m benchmarks.fencing.subject MODULE CLASS DSN` prints one line of JSON.

What a library prints goes to standard error, so that the answer stays alone on standard output.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from dataclasses import asdict
from importlib.metadata import version

from benchmarks.fencing.scenario import Scenario, observe


def main() -> None:
    """Play the scenario and print what was seen; a package that is not there is an answer too."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _ = os.dup2(2, 1)
    _, module, name, dsn = sys.argv
    try:
        scenario: Scenario = getattr(importlib.import_module(module), name)()
    except ImportError as error:
        answer: dict[str, object] = {"absent": str(error)}
    else:
        versions = {package: version(package) for package in scenario.packages}
        answer = {"versions": versions, "observation": asdict(asyncio.run(observe(scenario, dsn)))}
    _ = answers.write(json.dumps(answer) + "\n")
    answers.close()


if __name__ == "__main__":
    main()
