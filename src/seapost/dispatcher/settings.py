"""Settings of the dispatcher and of each destination (REF-13, CLM-11, RTY-04); they refuse themselves when wrong.

Every value has a limit. Durations are seconds. There is one place with defaults, here; no code path has its own.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from seapost.database.pool import RoleTimeouts
from seapost.model.errors import InvalidSetting

DAY_SECONDS: Final = 86_400.0
DELAY_SECONDS_MAX: Final = 30 * DAY_SECONDS
BATCH_SIZE_MAX: Final = 10_000
LANES_MAX: Final = 64
COUNT_MAX: Final = 1_000_000
POLL_STAGES_MAX: Final = 8
POOL_WAIT_SECONDS: Final = 30.0

_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSettings:
    """How one destination is served; each destination has its own, so that a slow one starves nobody (F23).

    Attributes:
        name: the destination, as in the delivery set.
        batch_size: deliveries per claim and per call.
        lanes: batches in flight at a time; also the limit of concurrent calls.
        lease_seconds: how long a claim lasts without renewal.
        renew_before_seconds: a lease is renewed when so much of it is left; None is two thirds of it.
        timeout_seconds: longest call.
        backoff_base_seconds: ceiling of the first retry delay; it doubles with each failure.
        backoff_min_seconds: no retry comes sooner than this.
        backoff_max_seconds: ceiling of our own delays.
        retry_after_max_seconds: most that a consumer's wish can postpone a retry.
        max_attempts: counted failures that lead to quarantine; None: never (AMB-18).
        rate_per_second: most deliveries per second, None: no limit.
        breaker_failures: failed calls in a row that stop the calls for a while.
        breaker_open_seconds: that while; then one delivery probes.
        sweep_seconds: a claim without the low-water hint runs at least so often, and 20 times its own duration
            apart (AMB-48).
    """

    name: str
    batch_size: int = 500
    lanes: int = 2
    lease_seconds: float = 60.0
    renew_before_seconds: float | None = None
    timeout_seconds: float = 30.0
    backoff_base_seconds: float = 1.0
    backoff_min_seconds: float = 0.1
    backoff_max_seconds: float = 300.0
    retry_after_max_seconds: float = 3_600.0
    max_attempts: int | None = None
    rate_per_second: float | None = None
    breaker_failures: int = 5
    breaker_open_seconds: float = 10.0
    sweep_seconds: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what breaks a rule, naming field and rule."""
        if not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise InvalidSetting(f"name: a lower-case name of 1 to 100 characters, not {self.name!r}")
        _check_count("batch_size", self.batch_size, 1, BATCH_SIZE_MAX)
        _check_count("lanes", self.lanes, 1, LANES_MAX)
        _check_number("lease_seconds", self.lease_seconds, 0.1, DAY_SECONDS)
        if self.renew_before_seconds is not None:
            _check_number("renew_before_seconds", self.renew_before_seconds, 0.01, DAY_SECONDS)
            if self.renew_before_seconds >= self.lease_seconds:
                raise InvalidSetting("renew_before_seconds: shorter than lease_seconds")
        _check_number("timeout_seconds", self.timeout_seconds, 0.01, 3_600.0)
        _check_number("backoff_min_seconds", self.backoff_min_seconds, 0.001, DAY_SECONDS)
        _check_number("backoff_base_seconds", self.backoff_base_seconds, 0.001, DAY_SECONDS)
        _check_number("backoff_max_seconds", self.backoff_max_seconds, 0.001, DELAY_SECONDS_MAX)
        if not self.backoff_min_seconds <= self.backoff_base_seconds <= self.backoff_max_seconds:
            raise InvalidSetting("backoff_base_seconds: between backoff_min_seconds and backoff_max_seconds")
        _check_number("retry_after_max_seconds", self.retry_after_max_seconds, 0.001, DELAY_SECONDS_MAX)
        if self.retry_after_max_seconds < self.backoff_min_seconds:
            raise InvalidSetting("retry_after_max_seconds: at least backoff_min_seconds")
        if self.max_attempts is not None:
            _check_count("max_attempts", self.max_attempts, 1, COUNT_MAX)
        if self.rate_per_second is not None:
            _check_number("rate_per_second", self.rate_per_second, 0.01, COUNT_MAX)
        _check_count("breaker_failures", self.breaker_failures, 1, 1_000)
        _check_number("breaker_open_seconds", self.breaker_open_seconds, 0.01, 3_600.0)
        _check_number("sweep_seconds", self.sweep_seconds, 0.01, 60.0)

    @property
    def renew_every_seconds(self) -> float:
        """Time from a claim or renewal to the next renewal."""
        if self.renew_before_seconds is None:
            return self.lease_seconds / 3
        return self.lease_seconds - self.renew_before_seconds

    @property
    def call_seconds_max(self) -> float:
        """When a call is given up from outside: a little after the transport should have done it itself."""
        return self.timeout_seconds * 1.1 + 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherSettings:
    """What all destinations of a process share.

    Attributes:
        drain_seconds: how long `stop` waits for calls that run.
        give_back_seconds: after that, how long it may take to give back what is left.
        poll_seconds: waits between claims that find nothing; the last one repeats.
        recover_every_seconds: time between two looks for expired leases.
        recover_limit: leases recovered per transaction.
        recover_delay_seconds: delay after which a recovered delivery is due again (AMB-25).
        statement_timeout_seconds, lock_timeout_seconds, idle_in_transaction_timeout_seconds: limits of the
            dispatcher's database sessions; see `role_timeouts`.
        expected_delivery_set_version: the version that must be active at start; checked once (AMB-37).
    """

    drain_seconds: float = 20.0
    give_back_seconds: float = 5.0
    poll_seconds: tuple[float, ...] = (0.005, 0.05, 0.5)
    recover_every_seconds: float = 1.0
    recover_limit: int = 1_000
    recover_delay_seconds: float = 0.0
    statement_timeout_seconds: float = 30.0
    lock_timeout_seconds: float = 5.0
    idle_in_transaction_timeout_seconds: float = 30.0
    expected_delivery_set_version: str | None = None

    def __post_init__(self) -> None:
        """Refuse what breaks a rule, naming field and rule."""
        _check_number("drain_seconds", self.drain_seconds, 0.0, 3_600.0)
        _check_number("give_back_seconds", self.give_back_seconds, 0.1, 600.0)
        if not 1 <= len(self.poll_seconds) <= POLL_STAGES_MAX:
            raise InvalidSetting(f"poll_seconds: 1 to {POLL_STAGES_MAX} waits")
        for seconds in self.poll_seconds:
            _check_number("poll_seconds", seconds, 0.001, 60.0)
        if list(self.poll_seconds) != sorted(self.poll_seconds):
            raise InvalidSetting("poll_seconds: each wait at least as long as the one before")
        _check_number("recover_every_seconds", self.recover_every_seconds, 0.01, 3_600.0)
        _check_count("recover_limit", self.recover_limit, 1, BATCH_SIZE_MAX)
        _check_number("recover_delay_seconds", self.recover_delay_seconds, 0.0, DAY_SECONDS)
        _check_number("statement_timeout_seconds", self.statement_timeout_seconds, 0.1, 3_600.0)
        _check_number("lock_timeout_seconds", self.lock_timeout_seconds, 0.1, 3_600.0)
        _check_number("idle_in_transaction_timeout_seconds", self.idle_in_transaction_timeout_seconds, 0.1, 3_600.0)
        if self.expected_delivery_set_version is not None and not self.expected_delivery_set_version:
            raise InvalidSetting("expected_delivery_set_version: a version, or leave it out")

    @property
    def role_timeouts(self) -> RoleTimeouts:
        """For whoever opens the dispatcher's pool."""
        return RoleTimeouts(
            self.statement_timeout_seconds, self.lock_timeout_seconds, self.idle_in_transaction_timeout_seconds
        )

    @property
    def database_seconds_max(self) -> float:
        """Longest turn with the database: a free connection, one statement, a margin."""
        return POOL_WAIT_SECONDS + self.statement_timeout_seconds + 5.0


def pool_size(destinations: list[DestinationSettings]) -> int:
    """Pool connections that a dispatcher of these destinations can use at once (F79).

    One for each lane, one to renew, one to recover; the listener has a connection of its own besides.
    """
    return sum(destination.lanes for destination in destinations) + 2


def _check_number(field: str, value: float, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidSetting(f"{field}: a number, not {value!r}")
    if not least <= value <= most:
        raise InvalidSetting(f"{field}: {least:g} to {most:g}, not {value!r}")


def _check_count(field: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidSetting(f"{field}: a whole number from {least} to {most}, not {value!r}")
