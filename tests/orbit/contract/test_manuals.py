"""The manuals state what the specification says that they must, and claim nothing that they must not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

import pytest
from typer.main import get_command

from orbit.cli.main import app
from orbit.model.codes import CODES
from orbit.server.http.operations import OPERATIONS
from tests.kit.tree import ROOT

DOCS: Final = ROOT / "docs"
MANUAL: Final = "api/subscriptions.md"
SDK: Final = "sdk/event-consumer.md"
INBOX: Final = "examples/result-inbox.md"
UPGRADE: Final = "how-to/upgrade-orbit.md"
REPORT: Final = "reports/phase-3-result-subscription-core.md"
OURS: Final = (
    MANUAL,
    SDK,
    INBOX,
    UPGRADE,
    REPORT,
    "how-to/run-orbit.md",
    "how-to/rotate-orbit-credentials.md",
    "how-to/orbit-events-status.md",
    "explanation/orbit-walk.md",
)

# Requirement, page, and what the page must say, as patterns over its text on one line.
STATEMENTS: Final = (
    ("orbit:SRC-03", MANUAL, (r"neither success nor final failure", r"authoritative result may follow later")),
    ("orbit:SUB-16", MANUAL, (r"`cursor_sequence` is not an acknowledged position", r"has been scanned")),
    ("orbit:MAT-09", MANUAL, (r"bounds deliveries, not storage",)),
    ("orbit:MAT-10", MANUAL, (r"not deleted in this version", r"keeps using database space")),
    (
        "orbit:MAT-11",
        MANUAL,
        (r"Cleanup, moving the retained boundary, alerts on capacity .* belong to a later phase \(P6\)",),
    ),
    ("orbit:MIG-11", MANUAL, (r"beginning of the result journal, not of the system", r"none are made up afterwards")),
    ("orbit:MIG-11", UPGRADE, (r"does not stand for all tasks since the system was set up",)),
    ("orbit:MIG-05", UPGRADE, (r"Stop the write nodes.*Apply the migration.*Start the new version",)),
    ("orbit:MIG-07", UPGRADE, (r"Old and new writers must not run at the same time",)),
    ("orbit:LSE-15", MANUAL, (r"may look `LEASED` past its deadline", r"no sweeper", r"next claim")),
    ("orbit:LSE-16", MANUAL, (r"reliably saved or processed the result", r"grants no right")),
    (
        "orbit:LSE-20",
        MANUAL,
        (r"at least once, never exactly once", r"cannot guarantee that your business runs exactly once"),
    ),
    ("orbit:LSE-21", MANUAL, (r"Do not throw an event away", r"leads to another delivery")),
    (
        "orbit:LSE-37",
        MANUAL,
        (r"longer than 30 seconds is delivered to again", r"Long work belongs behind your own inbox"),
    ),
    ("orbit:GEN-04", MANUAL, (r"does not mean that phase P3 of the Orbit plan is",)),
    ("orbit:GEN-04", REPORT, (r"does not say that phase P3 of the Orbit plan is complete",)),
    (
        "orbit:GEN-03",
        REPORT,
        (r"storage and service", r"HTTP", r"event connection", r"SDK and consumer", r"force-kill"),
    ),
    ("orbit:JRN-12", REPORT, (r"promises no throughput", r"verified in P6")),
    ("orbit:AUT-09", "how-to/rotate-orbit-credentials.md", (r"Subscriptions stay with the old credential", r"\(P6\)")),
    ("orbit:MAT-08", MANUAL, (r'no single "largest acknowledged sequence"',)),
    ("orbit:SRC-03", SDK, (r"needs_review", r"neither|not (?:a )?success")),
    ("orbit:SDK-16", SDK, (r"at least once", r"exactly.once", r"(?i)inbox", r"LEASED", r"cursor", r"needs_review")),
    ("orbit:LSE-37", SDK, (r"(?i)long(?:er)? work|longer than",)),
    ("orbit:EXM-02", INBOX, (r"one local transaction", r"only then does the consumer send the ACK")),
)


def _text(page: str) -> str:
    """A page on one line, without the marks of emphasis."""
    return " ".join((DOCS / page).read_text(encoding="utf-8").replace("**", "").split())


@pytest.mark.parametrize(
    ("page", "patterns"),
    [
        pytest.param(page, patterns, id=f"{requirement}-{page}", marks=pytest.mark.req(requirement))
        for requirement, page, patterns in STATEMENTS
    ],
)
def test_a_manual_states_what_it_must(page: str, patterns: tuple[str, ...]) -> None:
    """The sentence is there, in the page where a reader looks for it."""
    text = _text(page)
    for pattern in patterns:
        assert re.search(pattern, text), f"{page} does not say {pattern!r}"


@pytest.mark.req("orbit:GEN-09")
@pytest.mark.parametrize("page", [MANUAL, SDK, INBOX, REPORT, "schemas/orbit.events.v1.schema.json"])
def test_a_document_of_the_specification_exists(page: str) -> None:
    """The five documents have their names from the specification, and are not empty."""
    assert (DOCS / page).stat().st_size > 1000


@pytest.mark.req("orbit:GEN-02")
@pytest.mark.parametrize(
    "part",
    [
        "src/orbit/store",
        "src/orbit/tasks",
        "src/orbit/subscriptions",
        "src/orbit/server/http",
        "src/orbit/server/ws",
        "docs/schemas/orbit.events.v1.schema.json",
        "src/orbit/sdk/management.py",
        "src/orbit/sdk/connection.py",
        "src/orbit/sdk/consumer.py",
        "examples/orbit/manage_subscriptions.py",
        "examples/orbit/result_inbox.py",
        "tests/orbit/fault",
    ],
)
def test_a_part_of_the_feature_exists(part: str) -> None:
    """Storage and service, HTTP, WebSocket, schema, SDKs, consumer, examples, force-kill regression: all are there."""
    path = ROOT / part
    assert path.is_file() or any(path.glob("*.py"))


@pytest.mark.req("orbit:LSE-20", "orbit:GEN-04", "orbit:JRN-12")
@pytest.mark.parametrize("page", OURS)
def test_no_manual_promises_what_cannot_be_kept(page: str) -> None:
    """Exactly-once is only ever denied, P3 is not called complete, and no rate is published outside measurements."""
    text = _text(page)
    for match in re.finditer(r"exactly[ -]once", text, re.IGNORECASE):
        around = text[max(0, match.start() - 90) : match.end() + 40].lower()
        assert re.search(r"\bno\b|\bnot\b|never|nobody|nothing|cannot|inbox|applies each", around), f"{page}: {around}"
    assert not re.search(r"P3 is (?:now )?complete\b", text.replace("phase P3 of the Orbit plan is complete", ""))
    assert not re.search(r"\d[\d,.]*k? (?:results|deliveries|events)(?: per second|/s)", text), page


@pytest.mark.req("orbit:ERR-03")
def test_the_manual_names_every_code_of_http() -> None:
    """Each code with its status, so that a client can decide on it."""
    text = (DOCS / MANUAL).read_text(encoding="utf-8")
    for code, facts in CODES.items():
        assert facts.status is None or f"| `{code}` | {facts.status} |" in text


@pytest.mark.req("orbit:API-01", "orbit:API-02")
def test_the_manual_names_every_operation_of_http() -> None:
    """The table of the manual is that of the OpenAPI document, no more and no less."""
    text = (DOCS / MANUAL).read_text(encoding="utf-8")
    named = {
        (method, path.split("?")[0])
        for method, path in re.findall(r"^\| `(GET|POST) (/v1/[^`]+)` \|", text, re.MULTILINE)
    }
    offered = {(one.method, one.path) for one in OPERATIONS if one.path.startswith("/v1/")}
    assert named == offered


def _orbit_lines() -> Iterator[tuple[str, str]]:
    """Every command line of `orbit` in a block or in the text of our pages, joined where it goes on."""
    for path in [ROOT / "README.md", *sorted(set(DOCS.rglob("*.md")) - set((DOCS / "spec").glob("*")))]:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = re.findall(r"^```(?:sh)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        lines = [part for block in blocks for line in block.splitlines() for part in line.split("&&")]
        for line in [*lines, *re.findall(r"`(orbit [a-z][^`\n]*)`", text)]:
            command = line.split("#")[0].strip()
            if re.match(r"orbit [a-z]", command) and not {"…", "|"} & set(command.replace("cred_0190…", "")):
                yield str(path.relative_to(ROOT)), command


@pytest.mark.req("F85")
@pytest.mark.parametrize(("page", "line"), sorted(set(_orbit_lines())))
def test_a_command_of_the_documentation_exists(page: str, line: str) -> None:
    """What a reader types is a command of this release, with options that it has."""
    words = shlex.split(line)[1:]
    command: Any = get_command(app)
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"{page}: {line}"
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, f"{page}: {line}"
