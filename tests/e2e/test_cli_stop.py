"""How the commands that go on start late, stop in order, and leave nothing behind."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from seapost.cli.exit_codes import ExitCode
from tests.kit.commands import Running
from tests.kit.database import DatabaseServer
from tests.kit.eventually import eventually, eventually_row
from tests.kit.shop import LOCK, Shop


@pytest.mark.req("F16", "REF-13")
@pytest.mark.parametrize(("signals", "drain_seconds"), [(1, "0.2"), (2, "600")])
def test_a_stop_gives_back_what_cannot_finish(shop: Shop, signals: int, drain_seconds: str) -> None:
    """While a handler hangs, the first signal waits for the drain time and the second does not; no lease stays."""
    holder = shop.consumer.connect(autocommit=True)
    holder.execute("select pg_advisory_lock(%s)", (LOCK,))
    with shop.serve() as receiver:
        address = receiver.logged("server.started")["address"]
        with shop.dispatch(address, SEAPOST_DISPATCHER_DRAIN_SECONDS=drain_seconds) as dispatcher:
            (event_id,) = shop.append("slow")
            shop.wait(event_id, "leased")
            _ = eventually_row(
                holder, "select 1 from pg_locks where locktype = 'advisory' and objid = %s and not granted", (LOCK,)
            )
            dispatcher.signal(signal.SIGTERM)
            _ = dispatcher.logged("dispatcher.stopping")
            if signals == 2:
                dispatcher.signal(signal.SIGTERM)
            stopped = dispatcher.finish()
        assert stopped.code == ExitCode.DONE, stopped
        assert shop.leases() == 0
        row = shop.connection.execute(
            "select status, failure_count, last_error_code from seapost.outbox_deliveries where event_id = %s",
            (event_id,),
        ).fetchone()
        assert row == ("pending", 0, "worker_stopped")
        holder.execute("select pg_advisory_unlock(%s)", (LOCK,))
    shop.producer.assert_places()


@pytest.mark.req("F16")
def test_a_stop_before_the_database_answers_is_immediate(folder: Path) -> None:
    """A dispatcher that still waits for its database holds nothing and ends with 0."""
    env = {
        "SEAPOST_DATABASE_DSN": "postgresql://app@127.0.0.1:1/orders",
        "SEAPOST_DESTINATIONS_BILLING_URL": "https://billing.example/",
    }
    arguments = ("dispatch", "--destination", "billing", "--wait", "600")
    with Running(*arguments, folder=folder, env=env) as dispatcher:
        _ = eventually(lambda: any("waiting for [database]" in line for line in list(dispatcher.stderr)))
        dispatcher.signal(signal.SIGTERM)
        assert dispatcher.finish().code == ExitCode.DONE


@pytest.mark.req("F79")
def test_a_dispatcher_waits_for_a_database_that_refuses(shop: Shop, database_server: DatabaseServer) -> None:
    """A database that takes no connection at start is asked again, and the dispatcher starts when it does."""
    with psycopg.connect(database_server.dsn(), autocommit=True) as server:
        name = sql.Identifier(shop.producer.name)
        server.execute(sql.SQL("alter database {} with allow_connections false").format(name))
        with shop.dispatch("http://127.0.0.1:9/") as dispatcher:
            _ = eventually(lambda: any("waiting for [database]" in line for line in list(dispatcher.stderr)))
            server.execute(sql.SQL("alter database {} with allow_connections true").format(name))
            _ = dispatcher.logged("dispatcher.started")
            dispatcher.signal(signal.SIGTERM)
            assert dispatcher.finish().code == ExitCode.DONE


@pytest.mark.req("F83")
def test_looking_gives_up_before_it_hurts(shop: Shop) -> None:
    """A look that takes longer than its limit ends with the code for a database that does not answer."""
    holder = shop.producer.connect()
    holder.execute("lock table seapost.delivery_ready in access exclusive mode")
    finished = shop.run("status", SEAPOST_DATABASE_READ_TIMEOUT_SECONDS="0.2")
    assert finished.code == ExitCode.UNREACHABLE
    assert "did not answer in time" in finished.stderr


@pytest.mark.req("F85", "REF-13")
def test_a_dispatcher_refuses_another_delivery_set_than_expected(shop: Shop) -> None:
    """A worker configured for a version that is not active ends with the code of a wrong setting."""
    with shop.dispatch("http://127.0.0.1:9/", SEAPOST_DISPATCHER_EXPECTED_DELIVERY_SET_VERSION="7") as dispatcher:
        finished = dispatcher.finish()
    assert finished.code == ExitCode.SETTING
    assert "expected_delivery_set_version" in finished.stderr


@pytest.mark.req("F85")
def test_watching_ends_with_ctrl_c(shop: Shop) -> None:
    """`status --watch --json` writes one document per look, until 130."""
    with shop.start("status", "--watch", "--every", "0.5", "--json") as watching:
        line = watching.printed(lambda line: line.endswith("\n"))
        assert json.loads(line)["destinations"][0]["destination"] == "billing"
        watching.signal(signal.SIGINT)
        assert watching.finish().code == ExitCode.INTERRUPTED
