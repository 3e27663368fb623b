"""What an operator types at three in the morning: the gate, a case from its preview to its end, and a late case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, LiteralString

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.main import run
from oceanway.execution import documents, transactions
from oceanway.installation.layout import Database
from seapost.testing.databases import DatabaseServer
from tests.kit.oceanway.lives import MOMENT, Life
from tests.kit.oceanway.pipeline import Pipeline

WORKLOAD = "drive.operations"


@pytest.fixture(scope="module")
def pipeline(database_server: DatabaseServer) -> Iterator[Pipeline]:
    """Five databases for this module."""
    opened = Pipeline.open(database_server)
    yield opened
    opened.close()


@pytest.fixture
def oceanway(pipeline: Pipeline, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Give the command line over these databases; it returns the document that a command writes."""
    config = tmp_path / "oceanway.toml"
    databases = "".join(f"{name} = {json.dumps(one.dsn)}\n" for name, one in pipeline.databases.items())
    config.write_text(f"[databases]\n{databases}\n[trust]\nown_logins = false\n", encoding="utf-8")

    def call(*arguments: str, code: ExitCode = ExitCode.DONE) -> Any:  # noqa: ANN401 - a document, or what was said
        found = run([*arguments, "--config", str(config), "--json"])
        written = capfd.readouterr()
        assert found is code, written.err
        return json.loads(written.out) if code is ExitCode.DONE else written.err

    return call


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    """Give the private and the public key of operations, as files."""
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "operations.pem", tmp_path / "operations-public.pem"
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return str(private), str(public)


def _one(pipeline: Pipeline, database: Database, statement: LiteralString, *values: object) -> Any:  # noqa: ANN401 - one column of one row
    with pipeline.connect(database) as connection:
        row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]


@pytest.mark.req("CASE-25", "AMB-51", "CASE-15", "CASE-22", "SEC-14")
def test_a_conflict_waits_for_the_gate_becomes_a_case_and_is_ended_by_commands(
    pipeline: Pipeline, oceanway: Callable[..., Any], keys: tuple[str, str], tmp_path: Path
) -> None:
    """Closed: nothing happens. Open: a case, which request, approval by somebody else, grant and repair end."""
    life = Life(pipeline).admit()
    attempt = life.attempt()
    life.finish(attempt)
    life.usage(attempt, "50")
    conflict = documents.closure_conflict(life.manifest, candidate_digest="0" * 64, detected_at=MOMENT)
    with pipeline.connect(Database.EXECUTION) as connection:
        transactions.declare_finalization_conflict(connection, conflict)
    life.close()
    find_case = "select case_ref from operations.finalization_case where operation_id = %s and state = 'open'"

    pipeline.settle()
    assert oceanway("gate", "show") == {"enabled": False, "command_chain": []}
    assert _one(pipeline, Database.CORE, find_case, life.run_id) is None

    assert oceanway("gate", "open", "--actor", "ana") == {"enabled": True}
    with pipeline.connect(Database.BILLING) as connection:
        connection.execute("update billing.finalization_fence set available_at = now() where state = 'pending'")
    pipeline.start_works()
    pipeline.settle()
    case = _one(pipeline, Database.CORE, find_case, life.run_id)
    seen = oceanway("case", "preview", case)
    assert (seen["run_id"], seen["reason"]) == (life.run_id, "execution_conflict")

    grant = tmp_path / "grant.json"
    resolve = ("case", "resolve", case, "--key", keys[0], "--workload", WORKLOAD, "--out", str(grant))
    apply = ("apply", str(grant), "--public-key", keys[1], "--workload", WORKLOAD)
    oceanway("case", "request", case, "--actor", "ana", "--reference", "investigation:ticket-17")
    oceanway("case", "approve", case, "--actor", "ana", "--seen", seen["decision"]["digest"], code=ExitCode.FAILED)
    oceanway(*resolve, code=ExitCode.FAILED)  # nobody has approved
    oceanway("case", "approve", case, "--actor", "ben", "--seen", seen["decision"]["digest"])
    oceanway(*resolve)
    assert grant.stat().st_mode & 0o077 == 0
    with pipeline.connect(Database.EXECUTION) as connection:
        transactions.repair_finalization(connection, life.run_id)
    refused = oceanway(*apply[:-1], "work.finalization", code=ExitCode.FAILED)
    assert json.loads(grant.read_text(encoding="utf-8"))["grant"] not in refused
    applied = oceanway(*apply)
    assert oceanway(*apply) == applied  # presented again: the first fact

    pipeline.settle()
    assert _one(pipeline, Database.CORE, find_case, life.run_id) is None
    state = "select state from billing.reservation where billing_reservation_id = %s"
    assert _one(pipeline, Database.BILLING, state, life.reservation_id) == "finalized"
    assert oceanway("gate", "close", "--actor", "ana") == {"enabled": False}


@pytest.mark.req("APP-11", "CASE-25")
def test_an_exposure_is_waived_by_commands(
    pipeline: Pipeline, oceanway: Callable[..., Any], keys: tuple[str, str], tmp_path: Path
) -> None:
    """Usage that is revised beyond what the account covers becomes a late case; a granted command waives it."""
    life = Life(pipeline).admit()
    attempt = life.attempt()
    life.finish(attempt)
    life.usage(attempt, "50")
    life.close()
    pipeline.settle()
    life.usage(attempt, "100000")
    pipeline.settle()
    find_case = "select case_ref from operations.late_case where operation_id = %s and state = 'open'"
    case = _one(pipeline, Database.CORE, find_case, life.run_id)

    grant = tmp_path / "grant.json"
    oceanway("late", "request", case, "waive", "--actor", "ana")
    oceanway("late", "approve", case, "--actor", "ben")
    oceanway("late", "grant", case, "--key", keys[0], "--workload", WORKLOAD, "--out", str(grant))
    result = oceanway("apply", str(grant), "--public-key", keys[1], "--workload", WORKLOAD)
    pipeline.settle()

    assert (result["action"], result["ledgerDelta"]) == ("waive", "0")
    assert _one(pipeline, Database.CORE, find_case, life.run_id) is None
    open_amount = "select exposure_open from billing.reservation where billing_reservation_id = %s"
    assert _one(pipeline, Database.BILLING, open_amount, life.reservation_id) == 0


def test_a_file_that_is_no_grant_is_refused_by_its_name(oceanway: Callable[..., Any], tmp_path: Path) -> None:
    """Neither its content nor a part of it is shown."""
    file = tmp_path / "letter.json"
    file.write_text('{"grant": "a secret"}', encoding="utf-8")
    key = tmp_path / "key.pem"
    key.write_bytes(
        Ed25519PrivateKey.generate()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )

    refused = oceanway("apply", str(file), "--public-key", str(key), "--workload", WORKLOAD, code=ExitCode.SETTING)

    assert "letter.json" in refused
    assert "a secret" not in refused
