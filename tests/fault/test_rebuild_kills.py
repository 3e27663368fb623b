"""A rebuild that is killed again and again, anywhere, ends like one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

import pytest

from tests.kit import accounts as kit
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.kernel import Kernel
from tests.kit.seeds import new_seed
from tests.kit.tree import ROOT

EVENTS = 1_500
KILLS = 6
PROGRAM = """
import sys
from seapost.projections.rebuild import Rebuild, RebuildSettings
from tests.kit import accounts as kit
settings = RebuildSettings(role=kit.ROLE, batch=40, workers=2, rate=float(sys.argv[2]))
Rebuild(kit.accounts("2"), sys.argv[1], actor="killed", settings=settings).run()
"""


@pytest.mark.req("AMB-39", "ORD-02", "F41")
def test_a_killed_rebuild_goes_on_where_it_was(database: TestDatabase) -> None:
    """Each run folds only what lacks a receipt; nothing is folded twice, whatever was in flight at the kill."""
    seed = new_seed()
    choice = random.Random(seed)
    kit.prepare_database(database, "1", "2")
    envelopes = kit.movements(seed, 60, EVENTS)
    with database.connect(autocommit=True) as connection:
        kernel = Kernel(connection)
        kernel.append(*envelopes)
        for kill in range(1, KILLS + 1):
            running = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, database.dsn, "2000"], cwd=ROOT, env={**os.environ}
            )
            least = min(EVENTS - 1, kill * EVENTS // (KILLS + 2) + choice.randrange(40))
            _ = eventually(lambda least=least: kit.receipts(kernel, "2") >= least, what=f"progress, seed {seed}")
            running.send_signal(signal.SIGKILL)
            assert running.wait(10) == -signal.SIGKILL, f"seed {seed}"
        before = kit.receipts(kernel, "2")
        assert before < EVENTS, f"seed {seed}"
        report = kit.rebuild(database, kit.accounts("2"))
        assert report.is_complete
        assert kit.receipts(kernel, "2") == EVENTS
        assert kit.balances(kernel, "2") == kit.fold_of(envelopes), f"seed {seed}"
