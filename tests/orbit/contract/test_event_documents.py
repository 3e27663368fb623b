"""The published documents of `orbit.events.v1`: current, as the specification says, and true of the code."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from orbit.model.codes import CODES
from orbit.wire.asyncapi import CLOSE_CODES, asyncapi_document, error_codes
from orbit.wire.publish import DOCUMENTS
from orbit.wire.schema import frame_schema
from tests.kit.orbit.frames import assert_valid
from tests.kit.tree import ROOT

SPECIFICATION: Final = ROOT / "docs" / "spec" / "subscriptions.md"


def section_25() -> str:
    """The section with the message schema and the trace."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    return text[text.index("\n## 25. ") : text.index("\n## 26. ")]


@pytest.mark.req("orbit:GEN-10", "orbit:GEN-09", "orbit:WSS-01")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_published_document_is_current(name: str) -> None:
    """The committed file is what the types would write now; `python -m orbit.wire.publish` writes it anew."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == DOCUMENTS[name](), name


@pytest.mark.req("orbit:WSS-01", "orbit:GEN-10")
def test_the_generated_schema_is_the_one_of_the_specification() -> None:
    """Member by member: every bound, pattern and list of section 25 comes out of the models."""
    found = re.search(r"```json\n(.*?)```", section_25(), re.DOTALL)
    assert found is not None
    assert frame_schema() == json.loads(found[1])
    Draft202012Validator.check_schema(frame_schema())


@pytest.mark.req("orbit:T-E10")
def test_the_trace_of_the_specification_is_valid() -> None:
    """Every frame that the specification shows, in both directions."""
    found = re.search(r"```jsonl\n(.*?)```", section_25(), re.DOTALL)
    assert found is not None
    lines = found[1].splitlines()
    assert len(lines) > 10
    assert_valid(lines)


def references(value: dict[str, Any]) -> set[str]:
    """Every `$ref` of a document."""
    return set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(value)))


@pytest.mark.req("orbit:GEN-10")
def test_the_asyncapi_document_holds_together() -> None:
    """Each reference leads somewhere inside, and every message of the schema can be sent by one of both sides."""
    document = asyncapi_document()
    for reference in references(document):
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    sent = {
        reference["$ref"].rpartition("/")[2]
        for operation in document["operations"].values()
        for reference in operation["messages"]
    }
    assert sent == {reference["$ref"].rpartition("/")[2] for reference in frame_schema()["oneOf"]}


@pytest.mark.req("orbit:GEN-10", "orbit:ERR-03")
def test_the_close_codes_are_those_of_the_specification() -> None:
    """The table of section 16 and the codes that errors lead to name the same codes."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    table = text[text.index("| Close code | Meaning |") : text.index("\n## 17. ")]
    listed = {int(code) for code in re.findall(r"^\| (\d{4}) \|", table, re.MULTILINE)}
    assert {close.code for close in CLOSE_CODES} == listed
    assert {close for _, close in error_codes() if close is not None} <= listed


@pytest.mark.req("orbit:ERR-01", "orbit:ERR-02", "orbit:ERR-03")
def test_the_codes_of_error_frames_are_those_of_the_specification() -> None:
    """Section 20: fatal with which close code, or not fatal."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    section = text[text.index("\n## 20. ") : text.index("\n## 21. ")]
    said: dict[str, int | None] = {}
    for codes, wss in re.findall(r"^\| (`[^|]*`) \|[^|]*\| (fatal \d{4}|not fatal) \|", section, re.MULTILINE):
        for code in re.findall(r"`([A-Z_]+)`", codes):
            said[code] = int(wss.removeprefix("fatal ")) if wss.startswith("fatal") else None
    assert dict(error_codes()) == said
    assert set(said) <= set(map(str, CODES))
