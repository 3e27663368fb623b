"""`make fencing OPERATIONS=n`: n stale words on a database of its own; exit code 1 when one is believed.

The server is the embedded one, or the one that SEAPOST_TEST_DSN names. SEAPOST_SEED plays a run again.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from typing import Final

from rich.console import Console
from rich.table import Table

from seapost.database.installer import GuardLevel
from seapost.testing import serve_databases
from tests.fencing.campaign import Plan, Tally, campaign, restored
from tests.kit.database import SERVER_VARIABLE
from tests.kit.seeds import new_seed

OPERATIONS_DEFAULT: Final = 100_000
OPERATIONS_MAX: Final = 10_000_000
BATCH_MAX: Final = 600


def main() -> int:
    """Run one campaign and print what was said and what was believed."""
    operations = int(os.environ.get("OPERATIONS") or OPERATIONS_DEFAULT)
    if not 1 <= operations <= OPERATIONS_MAX:
        sys.stderr.write(f"OPERATIONS must be from 1 to {OPERATIONS_MAX}, not {operations}\n")
        return 2
    rng = random.Random(new_seed())
    with serve_databases(os.environ.get(SERVER_VARIABLE)) as server:
        original = server.create(GuardLevel.LEAN)
        database, lost = restored(server, original)
        try:
            tally = campaign(database, lost, rng, Plan(operations, BATCH_MAX))
            database.assert_places()
        finally:
            server.drop(database)
            server.drop(original)
    _report(tally)
    return int(tally.accepted > 0 or tally.live_accepted != tally.live or tally.live == 0)


def _report(tally: Tally) -> None:
    console = Console()
    for title, place in (("verb", 0), ("driver", 1), ("why it is stale", 2)):
        counts: Counter[str] = Counter()
        for key, number in tally.kinds.items():
            counts[str(key[place])] += number
        table = Table(title, "stale words", box=None)
        for name, number in counts.most_common():
            table.add_row(name, f"{number:,}")
        console.print(table)
    sys.stdout.write(f"{tally}\n")


if __name__ == "__main__":
    sys.exit(main())
