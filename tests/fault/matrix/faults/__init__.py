"""One file for each fault; the list is the matrix."""

from __future__ import annotations

from typing import Final

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.faults.clock_wrong import ClockWrong
from tests.fault.matrix.faults.connection_cut import ConnectionCut
from tests.fault.matrix.faults.disk_full import DiskFull
from tests.fault.matrix.faults.dispatcher_frozen import DispatcherFrozen
from tests.fault.matrix.faults.dispatcher_killed import DispatcherKilled
from tests.fault.matrix.faults.half_open import HalfOpen
from tests.fault.matrix.faults.killed_repeatedly import KilledRepeatedly
from tests.fault.matrix.faults.pool_exhausted import PoolExhausted
from tests.fault.matrix.faults.producer_killed import ProducerKilled
from tests.fault.matrix.faults.server_restarted import ServerRestarted
from tests.fault.matrix.faults.sessions_terminated import SessionsTerminated

FAULTS: Final[tuple[type[Fault], ...]] = (
    DispatcherKilled,
    DispatcherFrozen,
    SessionsTerminated,
    ServerRestarted,
    HalfOpen,
    ConnectionCut,
    PoolExhausted,
    ClockWrong,
    DiskFull,
    KilledRepeatedly,
    ProducerKilled,
)
BY_NAME: Final = {fault.name: fault for fault in FAULTS}
