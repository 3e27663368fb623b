"""Rules of structure that no run can show: rooms, technique, and what the code must not hold."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from orbit.model import limits
from orbit.wire import frames
from seapost.database.installer.server import SERVER_VERSION_MIN
from tests.kit.tree import ROOT

ORBIT: Final = ROOT / "src" / "orbit"


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.req("orbit:GEN-01", "orbit:GEN-05", "orbit:SDK-02")
def test_the_sdk_imports_no_room_of_the_server() -> None:
    """Client code reaches the service by HTTP and WebSocket only; the examples import nothing but the SDK of it."""
    allowed = ("orbit.sdk", "orbit.wire", "orbit.model")
    sources = [*(ORBIT / "sdk").rglob("*.py"), *(ROOT / "examples" / "orbit").rglob("*.py")]
    assert len(sources) > 10
    for path in sources:
        ours = {name for name in _imports(path) if name.split(".")[0] in {"orbit", "seapost"}}
        assert all(
            name in {"orbit", *allowed} or name.startswith(tuple(f"{one}." for one in allowed)) for name in ours
        ), path


@pytest.mark.req("orbit:GEN-05")
def test_storage_and_services_are_modules_of_their_own() -> None:
    """Subscriptions, deliveries and the journal have each their own functions, and the import layers are enforced."""
    for area in ("subscription", "delivery", "journal"):
        assert list((ORBIT / "sql" / "functions" / area).glob("*.sql"))
    contracts = _project()["tool"]["importlinter"]["contracts"]
    layers = next(one for one in contracts if one["id"] == "orbit-layers")
    assert layers["exhaustive"] is True
    assert layers["type"] == "layers"


@pytest.mark.req("orbit:GEN-06")
def test_the_technique_is_that_of_the_specification() -> None:
    """Python 3.11 or newer, psycopg 3, an ASGI application; the oldest PostgreSQL that is served is 15."""
    project = _project()["project"]
    assert project["requires-python"] == ">=3.11"
    assert any(one.startswith("psycopg[") and ">=3." in one for one in project["dependencies"])
    assert any(one.startswith("fastapi") for one in project["optional-dependencies"]["server"])
    assert SERVER_VERSION_MIN == 150_000


@pytest.mark.req("orbit:LCK-12", "orbit:LCK-14")
def test_no_room_opens_a_transaction_around_its_own_code() -> None:
    """Connections are in autocommit mode and a call is one statement, so nothing can be sent while a row is locked."""
    rooms = ("store", "access", "tasks", "subscriptions", "journal", "server")
    for room in rooms:
        for path in (ORBIT / room).rglob("*.py"):
            if path == ORBIT / "store" / "history.py":
                continue  # `orbit events export` reads everything in one snapshot and locks nothing
            text = path.read_text(encoding="utf-8").replace("`connection.transaction()`", "")
            assert ".transaction(" not in text, path
            assert "autocommit=False" not in text, path
    assert "autocommit=True" in (ORBIT / "store" / "database.py").read_text(encoding="utf-8")


@pytest.mark.req("orbit:LCK-13")
def test_no_function_takes_an_advisory_lock() -> None:
    """Rows are locked as rows; the installer's own lock is the kernel's."""
    for path in (ORBIT / "sql" / "functions").rglob("*.sql"):
        assert "advisory" not in path.read_text(encoding="utf-8"), path


@pytest.mark.req("orbit:JRN-07", "orbit:JRN-01")
def test_no_sequence_and_no_identity_gives_numbers() -> None:
    """They are not transactional; nothing in the schema uses one."""
    pattern = re.compile(
        r"\b(?:create sequence|nextval|bigserial|serial|generated (?:always|by default) as identity)\b"
    )
    for path in (ORBIT / "sql").rglob("*.sql"):
        text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")).lower()
        assert not pattern.search(text), path


@pytest.mark.req("orbit:LSE-06", "orbit:LSE-31", "orbit:LSE-16")
def test_there_is_no_way_to_refuse_or_extend_a_lease() -> None:
    """The lease is a constant, and no frame of a client could say anything but pull, ack and ping after hello."""
    assert limits.LEASE_SECONDS == 30
    sent = {"hello", "pull", "ack", "ping"}
    source = Path(frames.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r'type: Literal\["(\w+)"\]', source))
    assert sent <= named
    assert named.isdisjoint({"nack", "reject", "extend", "renew", "release", "defer"})


@pytest.mark.req("orbit:LSE-09")
def test_a_proof_is_compared_in_constant_time() -> None:
    """Both digests go through SHA-256 with the same fresh random value first, so a prefix that fits tells nothing."""
    text = (ORBIT / "sql" / "functions" / "delivery" / "acknowledge_v1.sql").read_text(encoding="utf-8")
    code = re.sub(r"--[^\n]*", "", text)
    blinded = re.search(
        r"sha256\((\w+\.\w+) \|\| \w+\.lease_secret_sha256\) = sha256\((\w+\.\w+) \|\| \w+\.\w+\)", code
    )
    assert blinded is not None
    assert blinded[1] == blinded[2]
    assert "gen_random_uuid()" in code or "random" in code
    assert not re.search(r"lease_secret_sha256\s*(?:=|is (?:not )?distinct from)", code.replace(blinded[0], ""))


@pytest.mark.req("orbit:LSE-09", "orbit:TSK-10")
@pytest.mark.parametrize("name", ["confirm_v1", "heartbeat_v1"])
def test_the_secret_of_an_attempt_is_compared_in_constant_time(name: str) -> None:
    """A worker's secret goes through the same comparison as a proof, never through one that stops at a difference."""
    functions = ORBIT / "sql" / "functions"
    code = re.sub(r"--[^\n]*", "", (functions / "attempt" / f"{name}.sql").read_text(encoding="utf-8"))
    assert "not orbit.secret_equals(p_secret_sha256, " in code
    assert not re.search(r"secret_sha256\)?\s*(?:=|<>|is (?:not )?distinct from)", code)
    assert "sha256(v_blind || p_left) = sha256(v_blind || p_right)" in (functions / "secret" / "equals.sql").read_text(
        encoding="utf-8"
    )
