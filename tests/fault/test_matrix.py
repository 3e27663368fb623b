"""A short pass through the fault matrix: every fault once, with a seed of this run. `make faults` plays many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.matrix import report
from tests.fault.matrix.fault import Fault
from tests.fault.matrix.faults import FAULTS
from tests.fault.matrix.play import SHORT, play
from tests.fault.matrix.servers import Servers
from tests.kit.database import DatabaseServer
from tests.kit.processes import Nursery
from tests.kit.seeds import new_seed


@pytest.fixture(scope="module")
def servers(database_server: DatabaseServer) -> Iterator[Servers]:
    """Give the servers of the matrix; the shared one is that of the test process."""
    with Servers(database_server) as servers:
        yield servers


@pytest.mark.timeout(300)
@pytest.mark.req("TST-27", "TST-28", "TST-30", "TST-33", "TST-34", "DLV-14", "DLV-15", "GEN-16", "CLM-07", "CLM-09")
@pytest.mark.req("F01", "F14", "F15", "F16", "F18", "F19", "F32", "F79")
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.name)
def test_a_fault_loses_and_doubles_nothing(
    kind: type[Fault], servers: Servers, nursery: Nursery, tmp_path: Path
) -> None:
    """What was committed is held once by every consumer that must have it, each call has its attempt, no late word is
    believed, recovery takes one lease and five seconds at most, and a drain leaves no lease.
    """
    if (reason := kind.gap()) is not None:
        pytest.skip(reason)
    seed = new_seed()
    print(report.replay(kind.name, seed))  # noqa: T201 - pytest shows it when the test fails
    one = play(kind, seed, servers, nursery, tmp_path, SHORT)
    assert not one.failures, "\n".join([report.line(one), *one.failures, report.replay(kind.name, seed)])
