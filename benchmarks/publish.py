"""`make bench-publish`: put the last full run's report and chart into the documentation.

A quick run is refused: its figures are too rough to be shown.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Final

from benchmarks.entrants import ROOT
from benchmarks.report import CHART

BUILT: Final = ROOT / "build" / "bench"
DOCUMENTATION: Final = ROOT / "docs"


class NothingToPublish(Exception):
    """There is no report, or not one of a full run."""


def publish(built: Path, documentation: Path) -> list[Path]:
    """Copy report and chart; returns the files written.

    Raises:
        NothingToPublish: the last run was not a full one.
    """
    try:
        name = json.loads((built / "report.json").read_text(encoding="utf-8"))["settings"]["name"]
    except FileNotFoundError:
        message = "there is no report; run `make bench` first"
        raise NothingToPublish(message) from None
    if name != "full":
        message = f"the last run was a {name} one; run `make bench` first"
        raise NothingToPublish(message)
    page, picture = documentation / "explanation" / "bench-report.md", documentation / "assets" / CHART
    text = (built / "report.md").read_text(encoding="utf-8")
    _ = page.write_text(text.replace(f"]({CHART})", f"](../assets/{CHART})"), encoding="utf-8")
    _ = shutil.copyfile(built / CHART, picture)
    return [page, picture]


def main() -> int:
    """Publish the last run; returns the exit code."""
    try:
        written = publish(BUILT, DOCUMENTATION)
    except NothingToPublish as error:
        print(error, file=sys.stderr)
        return 1
    for path in written:
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
