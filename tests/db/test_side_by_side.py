"""The side-by-side of stale successes (`make fencing-rivals`): it sees what happens, and Seapost refuses."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.fencing.scenario import Observation, Scenario, Worker, observe
from benchmarks.fencing.seapost import Seapost
from tests.kit.database import TestDatabase
from tests.kit.drivers.urls import url_of


@pytest.mark.req("CLM-09", "NEG-43", "F14")
async def test_seapost_refuses_the_stale_success_and_believes_the_owner(empty_database: TestDatabase) -> None:
    """The late acknowledgement changes nothing and is called stale; the holder's failure then counts."""
    seen = await observe(Seapost(), url_of(empty_database.dsn))
    assert (seen.stale.believed, seen.stale.answer) == (False, "['stale']")
    assert seen.stale.before == seen.stale.after == "leased, attempts=2"
    assert (seen.owner.believed, seen.owner.answer, seen.owner.after) == (True, "[]", "pending, attempts=2")


class Queue(Scenario):
    """A queue in memory that finishes jobs by their id, or only for whoever claimed last."""

    packages = ()
    calls = "nothing"

    def __init__(self, *, fenced: bool) -> None:
        self.fenced = fenced
        self.status = ""
        self.owner: Worker | None = None

    async def open(self, dsn: str) -> None:
        """There is nothing to open."""

    async def append(self) -> None:
        """Wait."""
        self.status = "waiting"

    async def claim(self, worker: Worker) -> None:
        """Run."""
        if self.status != "waiting":
            raise LookupError(worker)
        self.status, self.owner = "running", worker

    async def lose(self) -> None:
        """Wait again."""
        self.status = "waiting"

    async def succeed(self, worker: Worker) -> object:
        """Finish."""
        return self._end(worker, "done")

    async def fail(self, worker: Worker) -> object:
        """Fail; only what runs can."""
        if self.status != "running":
            message = "not running\nsecond line"
            raise ValueError(message)
        return self._end(worker, "failed")

    async def state(self) -> str:
        """The status."""
        return self.status

    async def close(self) -> None:
        """There is nothing to close."""

    def _end(self, worker: Worker, status: str) -> bool:
        if self.fenced and worker != self.owner:
            return False
        self.status = status
        return True


async def _seen(*, fenced: bool) -> tuple[Any, ...]:
    seen: Observation = await observe(Queue(fenced=fenced), "")
    return seen.stale.believed, seen.stale.answer, seen.owner.believed, seen.owner.answer


async def test_the_side_by_side_tells_a_queue_that_believes_from_one_that_does_not() -> None:
    """What is stored decides, whatever the call answers; an error is an answer too."""
    assert await _seen(fenced=False) == (True, "True", False, "ValueError: not running")
    assert await _seen(fenced=True) == (False, "False", True, "True")
