"""What operators see and may do: quarantine, payloads, limits of a look, and rights."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from seapost.cli.exit_codes import ExitCode
from tests.kit.commands import seapost
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.shop import Shop


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
    env = {"SEAPOST_DATABASE_DSN": database.dsn}
    seen: list[str] = []
    sizes: list[int] = []
    following: list[str] = []
    while following or not sizes:
        page = seapost("quarantine", "list", "--limit", "2", "--json", *following, folder=folder, env=env).document
        sizes.append(len(page["deliveries"]))
        seen += [one["eventId"] for one in page["deliveries"]]
        following = ["--before", page["next"]] if page["next"] else []
    assert sizes == [2, 2, 1]
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
