"""For tests of applications that use Seapost: real databases, a drain in the test's own process, fakes and builders.

The fixtures are in `seapost.testing.plugin`; the rest needs no pytest.
"""

from __future__ import annotations

from seapost.testing.appended import AppendedEvent, appended, assert_appended, refute_appended
from seapost.testing.build import build, received
from seapost.testing.consumer import FakeConsumer
from seapost.testing.databases import DatabaseServer, TestDatabase, serve_databases
from seapost.testing.drain import Drained, run_until_idle, run_until_idle_async

__all__ = [
    "AppendedEvent",
    "DatabaseServer",
    "Drained",
    "FakeConsumer",
    "TestDatabase",
    "appended",
    "assert_appended",
    "build",
    "received",
    "refute_appended",
    "run_until_idle",
    "run_until_idle_async",
    "serve_databases",
]
