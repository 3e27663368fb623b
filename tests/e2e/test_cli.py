"""The command line prepares databases, and two of its processes carry a fact to its receipt."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import UUID

import pytest

from seapost.cli.exit_codes import ExitCode
from tests.kit.commands import seapost
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.shop import Shop


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


@pytest.mark.req("F16", "F85", "MET-01", "MET-02", "MET-05", "GEN-07")
def test_a_fact_walks_to_its_receipt_through_two_processes(new_shop: Shop) -> None:
    """After `init` and `routes apply`, append, `dispatch` and `serve` bring one effect and one verified receipt."""
    shop = new_shop
    assert shop.run("init", "--dsn", shop.producer.dsn, "--consumer-dsn", shop.consumer.dsn).code == ExitCode.DONE
    assert shop.done("routes", "apply", "shop:application", "--consumer")["activated"] is False
    assert shop.done("routes", "apply", "shop:application")["activated"] is True
    with shop.serve() as receiver:
        address = receiver.logged("server.started")["address"]
        with shop.dispatch(address, "--monitor-port", "0", "--json") as dispatcher:
            _ = dispatcher.logged("dispatcher.started")
            (event_id,) = shop.append("order-1")
            shop.wait(event_id, "acknowledged")
            _watch(dispatcher.logged("server.started")["address"])
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


def _watch(address: str) -> None:
    """The monitor says that the dispatcher is alive, and counts what it did and what waits."""

    def get(path: str) -> str:
        with urlopen(address + path, timeout=10) as response:  # noqa: S310 - our own loopback server
            return response.read().decode()

    assert json.loads(get("/livez"))["status"] == "ok"
    for line in (
        'seapost_deliveries_pending{destination="billing"} 0.0',
        'seapost_deliveries_claimed_total{destination="billing"} 1.0',
        'part="dispatcher"',
    ):
        _ = eventually(lambda line=line: line in get("/metrics"), what=line)


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
