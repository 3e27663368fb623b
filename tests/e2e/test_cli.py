"""The command line against real databases: what it prepares, delivers, shows, and how it stops."""

from __future__ import annotations

import json
import re
import shutil
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from seapost.cli.exit_codes import ExitCode
from seapost.database.installer import GuardLevel
from tests.kit.commands import Finished, Running, seapost
from tests.kit.database import DatabaseServer, TestDatabase, open_directory
from tests.kit.eventually import eventually, eventually_row
from tests.kit.kernel import Kernel

LOCK: Final = 4_711
"""The advisory lock that an order called `slow` waits for in its handler; `SHOP` names it as well."""

SHOP: Final = """\
from seapost.contracts.events import Event
from seapost.inbox.inbox import Inbox
from seapost.model.errors import Reject
from seapost.outbox.application import Application


class OrderPlaced(Event, type="order.placed@1", producer="shop", aggregate="order"):
    order: str
    password: str = "hunter2"


application = Application("shop")
application.route(OrderPlaced, "billing")

inbox = Inbox("billing")


@inbox.consumer(OrderPlaced)
def bill(transaction, event):
    if event.order == "slow":
        transaction.execute("select pg_advisory_xact_lock(4711)")
    if event.order == "bad":
        raise Reject("there is no such order")
    transaction.execute("insert into public.invoice values (%s)", (event.order,))
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """A producer and its consumer as a user has them: a folder with code, and two databases."""

    folder: Path
    producer: TestDatabase
    consumer: TestDatabase
    env: dict[str, str]
    connection: Connection
    invoices: Connection

    def run(self, *arguments: str, **env: str) -> Finished:
        """Run one command in the folder."""
        return seapost(*arguments, folder=self.folder, env={**self.env, **env})

    def done(self, *arguments: str, **env: str) -> Any:  # noqa: ANN401 - JSON is what the command made of it
        """Run one command that must succeed; its document."""
        finished = self.run(*arguments, "--json", **env)
        assert finished.code == ExitCode.DONE, finished
        return finished.document

    def start(self, *arguments: str, **env: str) -> Running:
        """Start a command that goes on."""
        return Running(*arguments, folder=self.folder, env={**self.env, **env})

    def serve(self) -> Running:
        """Start the receiver on a free port, as the consumer's role."""
        return self.start("serve", "shop:inbox", "--port", "0", SEAPOST_CONSUMER_ROLE="seapost_consumer")

    def dispatch(self, address: str, *arguments: str, **env: str) -> Running:
        """Start a dispatcher that delivers to this address, as the dispatcher's role."""
        return self.start(
            "dispatch",
            *arguments,
            "--destination",
            "billing",
            SEAPOST_DATABASE_ROLE="seapost_dispatcher",
            SEAPOST_DESTINATIONS_BILLING_URL=address,
            SEAPOST_DESTINATIONS_BILLING_ALLOW_NETWORKS="127.0.0.1",
            **env,
        )

    def append(self, *orders: str) -> list[UUID]:
        """Append one event for each order through the public call."""
        with psycopg.connect(self.producer.dsn) as connection:
            namespace = _shop_module(self.folder)
            return [
                namespace["append"](connection, namespace["OrderPlaced"](order=order), key=f"order-{place}", revision=1)
                for place, order in enumerate(orders)
            ]

    def wait(self, event_id: UUID, status: str) -> None:
        """Wait until the delivery has this status."""
        _ = eventually_row(
            self.connection,
            "select 1 from seapost.outbox_deliveries where event_id = %s and status = %s",
            (event_id, status),
        )

    def leases(self) -> int:
        """How many deliveries somebody holds."""
        row = self.connection.execute(
            "select count(*) from seapost.outbox_deliveries where status = 'leased'"
        ).fetchone()
        assert row is not None
        return row[0]


def _shop_module(folder: Path) -> dict[str, Any]:
    """The user's module, read anew, so that tests share no classes."""
    namespace: dict[str, Any] = {"__name__": "shop"}
    exec(compile((folder / "shop.py").read_text(encoding="utf-8"), "shop.py", "exec"), namespace)  # noqa: S102 - our own text
    exec("from seapost.outbox.append import append", namespace)  # noqa: S102 - as above
    return namespace


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give an empty folder that an embedded server's own user can enter."""
    directory = open_directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def shop(folder: Path, database: TestDatabase, database_server: DatabaseServer) -> Iterator[Shop]:
    """Give a prepared shop: keys, routes active at the producer and known to the consumer."""
    consumer = database_server.create(GuardLevel.LEAN)
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    env = {"SEAPOST_DATABASE_DSN": database.dsn, "SEAPOST_CONSUMER_DSN": consumer.dsn}
    invoices = consumer.connect(autocommit=True)
    invoices.execute("create table public.invoice (number text not null)")
    invoices.execute("grant insert on public.invoice to seapost_consumer")
    shop = Shop(folder, database, consumer, env, database.connect(autocommit=True), invoices)
    assert shop.run("init", "--dsn", database.dsn, "--consumer-dsn", consumer.dsn).code == ExitCode.DONE
    assert shop.run("routes", "apply", "shop:application", "--consumer").code == ExitCode.DONE
    assert shop.run("routes", "apply", "shop:application").code == ExitCode.DONE
    yield shop
    database_server.drop(consumer)


# Preparing ------------------------------------------------------------------------------------------------


@pytest.mark.req("F85")
def test_init_prepares_everything_and_twice_changes_nothing(folder: Path, empty_database: TestDatabase) -> None:
    """Schema, settings and keys are made once; the private key is its owner's alone; a second run keeps all."""
    dsn = empty_database.dsn
    first = seapost("init", "--dsn", dsn, "--json", folder=folder)
    assert (first.code, first.stderr) == (ExitCode.DONE, "")
    private = folder / ".seapost" / "workload-private.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.name for path in before} >= {"seapost.toml", "workload-private.pem", "workload-public.pem"}

    second = seapost("init", "--dsn", dsn, "--json", folder=folder)
    assert [step["result"] for step in second.document["steps"]] == ["kept", "kept", "kept", "current"]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before

    migrated = seapost("migrate", "--json", folder=folder)
    assert (migrated.code, migrated.document["changed"]) == (ExitCode.DONE, False)
    assert seapost("status", "--json", folder=folder).document["destinations"] == []


def test_init_keeps_no_password_in_a_file(folder: Path, empty_database: TestDatabase) -> None:
    """A password in the connection string is used and never written down or shown."""
    dsn = f"{empty_database.dsn} password=tr0ub4dor"
    done = seapost("init", "--dsn", dsn, folder=folder)
    assert done.code == ExitCode.DONE
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()]
    assert not any("tr0ub4dor" in text for text in [*texts, done.stdout, done.stderr])
    assert "SEAPOST_DATABASE_DSN" in (folder / "seapost.toml").read_text(encoding="utf-8")


def test_init_without_a_database_brings_its_own(folder: Path) -> None:
    """With nothing but the wheel, `init` and then `status` work, and no server stays behind."""
    done = seapost("init", "--json", folder=folder)
    assert done.code == ExitCode.DONE, done
    assert set(done.document["databases"]) == {"database", "consumer"}
    status = seapost("status", "--json", folder=folder)
    assert status.code == ExitCode.DONE, status
    assert status.document["guardLevel"] == "lean"
    assert not (folder / ".seapost" / "postgres" / "postmaster.pid").exists()


@pytest.mark.req("F85")
def test_migrate_shows_its_plan_and_changes_nothing(folder: Path, empty_database: TestDatabase) -> None:
    """`--dry-run` prints SQL and locks; the database stays without our schema, which `status` then says."""
    env = {"SEAPOST_DATABASE_DSN": empty_database.dsn}
    plan = seapost("migrate", "--dry-run", folder=folder, env=env)
    assert plan.code == ExitCode.DONE
    assert "create table seapost.event" in plan.stdout
    assert "--   lock: " in plan.stdout
    missing = seapost("status", folder=folder, env=env)
    assert missing.code == ExitCode.SCHEMA
    assert "seapost migrate" in missing.stderr


def test_migrate_sets_the_guard_level(folder: Path, empty_database: TestDatabase) -> None:
    """`--guards strict` is recorded in the database and shown by `status`."""
    env = {"SEAPOST_DATABASE_DSN": empty_database.dsn}
    done = seapost("migrate", "--guards", "strict", "--json", folder=folder, env=env)
    assert done.document["guardLevel"] == "strict"
    assert seapost("status", "--json", folder=folder, env=env).document["guardLevel"] == "strict"


def test_routes_are_planned_applied_and_shown(shop: Shop) -> None:
    """After `apply` there is nothing to plan; a new destination is a difference that `--check` tells by its code."""
    assert shop.done("routes", "plan", "shop:application", "--check")["changes"] is False
    again = shop.done("routes", "apply", "shop:application")
    assert (again["deliverySetVersion"], again["activated"]) == ("1", False)
    text = (shop.folder / "shop.py").read_text(encoding="utf-8")
    changed = text.replace(
        'application.route(OrderPlaced, "billing")', 'application.route(OrderPlaced, "billing", "search")'
    )
    (shop.folder / "shop.py").write_text(changed, encoding="utf-8")

    plan = shop.run("routes", "plan", "shop:application", "--check", "--json")
    assert plan.code == ExitCode.CHECK_FAILED
    assert [member["destination"] for member in plan.document["added"]] == ["search"]
    registered = shop.done("routes", "apply", "shop:application", "--register-only")
    assert (registered["deliverySetVersion"], registered["activated"]) == ("2", False)
    assert shop.done("routes", "show")["definition"]["deliverySetVersion"] == "1"
    assert shop.done("routes", "apply", "shop:application")["activated"] is True
    shown = shop.done("routes", "show")
    assert [(one["deliverySetVersion"], one["status"]) for one in shown["versions"]] == [
        ("1", "retired"),
        ("2", "active"),
    ]


# The walk ---------------------------------------------------------------------------------------------------


@pytest.mark.req("F16", "F85", "MET-05", "GEN-07")
def test_a_fact_walks_to_its_receipt_through_two_processes(shop: Shop) -> None:
    """Append, `dispatch` and `serve` bring one effect and one verified receipt; both processes end with 0."""
    with shop.serve() as receiver:
        address = receiver.logged("server.started")["address"]
        with shop.dispatch(address, "--monitor-port", "0", "--json") as dispatcher:
            _ = dispatcher.logged("dispatcher.started")
            (event_id,) = shop.append("order-1")
            shop.wait(event_id, "acknowledged")
            dispatcher.signal(signal.SIGTERM)
            stopped = dispatcher.finish()
        receiver.signal(signal.SIGTERM)
        served = receiver.finish()
    assert (stopped.code, stopped.document["drained"]) == (ExitCode.DONE, True)
    assert served.code == ExitCode.DONE
    assert shop.leases() == 0
    assert shop.invoices.execute("select number from public.invoice").fetchall() == [("order-1",)]

    event = shop.done("event", "show", str(event_id))
    assert event["publishedAt"] is not None
    assert "payload" not in event
    delivery = shop.done("delivery", "show", str(event_id), "billing")
    assert (delivery["status"], len(delivery["attempts"])) == ("acknowledged", 1)
    audited = shop.done("status", "--audit")
    assert audited["defects"] == []
    assert audited["destinations"][0]["pending"] == 0
    _verify_receipt(shop, event_id, delivery)


def _verify_receipt(shop: Shop, event_id: UUID, delivery: dict[str, Any]) -> None:
    """The receipt that the consumer's database holds verifies, and both databases agree with it."""
    row = shop.invoices.execute(
        "select receipt_ref, receipt_digest, receipt_candidate,"
        """ to_char(committed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
        " from seapost.inbox_receipts where event_id = %s",
        (event_id,),
    ).fetchone()
    assert row is not None
    receipt = {
        **json.loads(row[2]),
        "consumerReceiptRef": row[0],
        "consumerReceiptDigest": row[1],
        "committedAt": row[3],
    }
    assert row[1] == delivery["ackReceiptDigest"]
    file = shop.folder / "receipt.json"
    file.write_text(json.dumps(receipt), encoding="utf-8")
    assert shop.done("receipt", "verify", "receipt.json")["valid"] is True
    assert shop.done("receipt", "verify", "receipt.json", "--compare")["comparison"] == "same"
    assert shop.done("receipt", "verify", "receipt.json", "--compare", "--consumer")["comparison"] == "same"
    piped = seapost("receipt", "verify", "-", "--json", folder=shop.folder, stdin=json.dumps(receipt))
    assert piped.document["receiptDigest"] == row[1]

    file.write_text(json.dumps({**receipt, "eventType": "order.changed@1"}), encoding="utf-8")
    forged = shop.run("receipt", "verify", "receipt.json", "--json")
    assert (forged.code, forged.document["valid"], forged.document["rule"]) == (ExitCode.CHECK_FAILED, False, "digest")
    file.write_text(json.dumps({**receipt, "extra": 1}), encoding="utf-8")
    assert shop.run("receipt", "verify", "receipt.json").code == ExitCode.CHECK_FAILED
    file.write_text('{"some": "json"}', encoding="utf-8")
    assert shop.run("receipt", "verify", "receipt.json", "--json").document["rule"] == "unknown_receipt_type"


def test_a_dispatcher_delivers_inside_its_own_process(shop: Shop) -> None:
    """With `--app` no receiver is needed: the inbox works in the dispatcher, on its own database."""
    with shop.start("dispatch", "--app", "shop:inbox") as dispatcher:
        _ = dispatcher.logged("dispatcher.started")
        event_ids = shop.append("order-1", "order-2")
        for event_id in event_ids:
            shop.wait(event_id, "acknowledged")
        dispatcher.signal(signal.SIGINT)
        assert dispatcher.finish().code == ExitCode.DONE
    rows = shop.invoices.execute("select number from public.invoice order by number").fetchall()
    assert rows == [("order-1",), ("order-2",)]


# Stopping -----------------------------------------------------------------------------------------------------


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


# Quarantine and what operators see --------------------------------------------------------------------------------


@pytest.mark.req("RTY-05", "RTY-06", "REF-08", "NEG-37", "F85")
def test_a_quarantined_delivery_is_seen_and_acknowledged_but_never_moved(shop: Shop) -> None:
    """Operators see the reason, record that they have seen it and their case; the delivery stays in quarantine."""
    with shop.start("dispatch", "--app", "shop:inbox") as dispatcher:
        bad, good = shop.append("bad", "order-1")
        shop.wait(bad, "quarantined")
        shop.wait(good, "acknowledged")
        record = dispatcher.logged("dispatcher.delivery_quarantined")
    assert "payload" not in record
    assert shop.done("status")["destinations"][0]["quarantinedUnacknowledged"] == 1
    listed = shop.done("quarantine", "list", "--open")
    assert [(one["eventId"], one["reason"]) for one in listed["deliveries"]] == [(str(bad), "version_unsupported")]

    key, missing = f"{bad}/billing", f"{good}/billing"
    partial = shop.run("quarantine", "acknowledge", key, missing, "--case", "INC-7", "--actor", "ada", "--json")
    assert partial.code == ExitCode.PARTIAL
    assert [one["result"] for one in partial.document["results"]] == ["acknowledged", "not_found"]
    again = shop.done("quarantine", "acknowledge", key, "--case", "INC-7", "--actor", "ada")
    assert again["results"][0]["result"] == "unchanged"
    other = shop.run("quarantine", "acknowledge", key, "--case", "INC-8", "--json")
    assert (other.code, other.document["results"][0]["result"]) == (ExitCode.FAILED, "acknowledged_otherwise")
    assert shop.run("quarantine", "acknowledge", missing).code == ExitCode.NOT_FOUND

    shown = shop.done("quarantine", "show", str(bad), "billing")
    assert (shown["caseId"], shown["acknowledgedAt"] is not None) == ("INC-7", True)
    assert shop.done("quarantine", "list", "--open")["deliveries"] == []
    assert shop.done("delivery", "show", str(bad), "billing")["status"] == "quarantined"
    audit = shop.connection.execute(
        "select actor, action, subject_ref from seapost.audit_records where action = 'quarantine.acknowledge'"
    ).fetchall()
    assert audit == [("ada", "quarantine.acknowledge", key)]


@pytest.mark.req("RTY-06")
def test_the_quarantine_is_paged_without_gap_or_repeat(folder: Path, database: TestDatabase) -> None:
    """Following `next` shows every delivery once, newest first, though all of them were quarantined at one moment."""
    kernel = Kernel(database.connect(autocommit=True))
    _ = kernel.route()
    event_ids = {str(event_id) for event_id in kernel.append_new(count=5)}
    assert kernel.quarantine(*kernel.claim()) == []
    seen: list[str] = []
    before: list[str] = []
    for _ in range(3):
        page = seapost(
            *("quarantine", "list", "--limit", "2", "--json", *before),
            folder=folder,
            env={"SEAPOST_DATABASE_DSN": database.dsn},
        ).document
        seen += [one["eventId"] for one in page["deliveries"]]
        before = ["--before", page["next"] or ""]
    assert page["next"] is None
    assert sorted(seen) == sorted(event_ids)
    assert seen == sorted(seen, reverse=True)


@pytest.mark.req("F88", "SEC-17")
def test_a_payload_is_shown_only_when_asked_masked_and_inert(shop: Shop) -> None:
    """Payloads stay hidden by default; when shown, configured fields are masked and nothing acts in a terminal."""
    hostile = "\x1b[2J</script><script>alert(1)</script>\r\nroot: ok \u202e"
    (event_id,) = shop.append(hostile)
    plain = shop.run("event", "show", str(event_id))
    assert "script" not in plain.stdout
    shown = shop.run("event", "show", str(event_id), "--payload")
    assert "\\u001b[2J" in shown.stdout
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown.stdout) is None
    assert "hunter2" not in shown.stdout
    document = shop.run("event", "show", str(event_id), "--payload", "--json").stdout
    assert document.isascii()
    assert json.loads(document)["payload"] == {"order": hostile, "password": "***"}
    masked = shop.done("event", "show", str(event_id), "--payload", SEAPOST_DISPLAY_MASKED_FIELDS="ORDER")
    assert masked["payload"] == {"order": "***", "password": "hunter2"}


@pytest.mark.req("F85")
def test_what_does_not_exist_is_told_as_such(shop: Shop) -> None:
    """Unknown events, deliveries and delivery sets have the code for not found, and one line."""
    nobody = "0190a6a0-0000-7000-8000-000000000000"
    for arguments in (
        ("event", "show", nobody),
        ("delivery", "show", nobody, "billing"),
        ("quarantine", "show", nobody, "billing"),
        ("routes", "show", "--version", "9"),
    ):
        finished = shop.run(*arguments)
        assert (finished.code, finished.stdout) == (ExitCode.NOT_FOUND, "")
        assert finished.stderr.count("\n") == 1


@pytest.mark.req("SEC-18")
def test_an_auditor_may_look_and_not_touch(shop: Shop) -> None:
    """With the auditor's role every read works, and acknowledging is refused by the database itself."""
    (event_id,) = shop.append("order-1")
    role = {"SEAPOST_DATABASE_ROLE": "seapost_auditor"}
    assert shop.done("status", "--audit", **role)["defects"] == []
    assert shop.done("event", "show", str(event_id), **role)["eventId"] == str(event_id)
    assert shop.done("quarantine", "list", **role)["deliveries"] == []
    refused = shop.run("quarantine", "acknowledge", f"{event_id}/billing", **role)
    assert refused.code == ExitCode.FAILED
    assert "permission denied" in refused.stderr
