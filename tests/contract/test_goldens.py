"""The published vectors: this release, its JSON Schemas and another language all agree with every one of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from seapost.contracts.contract_set import kernel_contracts
from seapost.contracts.goldens import CANONICAL_JSON, REFUSED_JSON, Golden, read_goldens, verify_goldens
from seapost.contracts.schema_export import json_schemas
from tests.kit.tree import ROOT

FOLDER = ROOT / "src" / "seapost" / "contracts" / "goldens"
GOLDENS = list(read_goldens())
OF_CONTRACTS = [golden for golden in GOLDENS if golden.title not in {CANONICAL_JSON, REFUSED_JSON}]
CANONICAL = [golden for golden in GOLDENS if golden.title != REFUSED_JSON]

# Published with the field cases; written here once more, so that nobody can regenerate them by mistake.
PUBLISHED = {
    "number-safe-F06": "e1da48c6a6089f06ecb4e0a2259e658e3786b2420f52baccdf929ec6460d7b41",
    "keys-utf16-F07": "425159f5c1f0575fbcbf9d05a8f60cde3d040eae5166aa2136657564048651b6",
    "keys-presentation-F07": "ec4e7d8c2963caa38dccc3d42693719ac9c6ecd783891b583d333565620ac2be",
    "number-zero-F09": "f3013f933b9fb80ab6d995e7ad9da36f683837ba1d81e950c943d40111eac2f0",
    "number-one-F09": "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd",
    "strings-composed-F11": "548e6c23920d3e450d2949502742e2b0bb9965b7559454d8e4f95107aa857edd",
    "strings-decomposed-F11": "a38eb1be025d5154c3fb3737952419fba1e566b7e00b658590881bb5166c3f5a",
}


def _name(golden: Golden) -> str:
    return f"{golden.title}/{golden.case}"


@pytest.mark.req("SET-15", "REF-03", "REF-02")
def test_this_release_agrees_with_every_vector() -> None:
    """Raw text gives the published bytes and digest, the bytes read back, and what must be refused is refused."""
    results = verify_goldens()
    assert [result for result in results if result.problem is not None] == []
    assert len(results) == len(list(FOLDER.rglob("*.json"))) == len(GOLDENS)


@pytest.mark.req("SET-15", "REF-03")
def test_every_contract_has_vectors() -> None:
    """No contract is published without at least one vector."""
    titles = {golden.title for golden in GOLDENS}
    assert {entry.title for entry in kernel_contracts().contracts} <= titles
    assert {CANONICAL_JSON, REFUSED_JSON} <= titles


@pytest.mark.req("F06", "F07", "F09", "F11")
def test_the_vectors_of_the_field_cases_have_the_known_digests() -> None:
    """The digests that the field cases print are the ones we publish."""
    found = {golden.case: golden.fields["digest"] for golden in GOLDENS if golden.title == CANONICAL_JSON}
    assert {case: found[case] for case in PUBLISHED} == PUBLISHED


@pytest.mark.req("SET-15")
@pytest.mark.parametrize(
    ("title", "case", "changes"),
    [
        (CANONICAL_JSON, "scalar", {"digest": "0" * 64}),
        (CANONICAL_JSON, "scalar", {"canonicalBytesHex": "22"}),
        (CANONICAL_JSON, "scalar", {"raw": "1"}),
        (CANONICAL_JSON, "scalar", {"digest": None}),
        (REFUSED_JSON, "number-nan", {"raw": "[1]"}),
        (REFUSED_JSON, "number-nan", {"pointer": "/0"}),
        ("ConsumerReceipt@1", "applied", {"raw": "{}"}),
        ("ConsumerReceipt@2", "applied", {}),
    ],
)
def test_a_changed_vector_is_noticed(tmp_path: Path, title: str, case: str, changes: dict[str, str | None]) -> None:
    """A vector that no longer fits is reported under its name, so the check cannot pass by checking nothing."""
    source = FOLDER / title.replace("@2", "@1") / f"{case}.json"
    fields = json.loads(source.read_text(encoding="utf-8")) | changes
    target = tmp_path / title / f"{case}.json"
    target.parent.mkdir()
    kept = {name: value for name, value in fields.items() if value is not None}
    _ = target.write_text(json.dumps(kept), encoding="utf-8")
    (result,) = verify_goldens(tmp_path)
    assert (result.title, result.case) == (title, case)
    assert result.problem


@pytest.mark.req("SET-01", "REF-03")
@pytest.mark.parametrize("golden", OF_CONTRACTS, ids=_name)
def test_the_json_schema_takes_every_vector_and_no_unknown_field(golden: Golden) -> None:
    """An independent validator accepts the published documents, and refuses each with one more field."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json_schemas()[golden.title]
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    document = json.loads(golden.fields["raw"])
    assert list(validator.iter_errors(document)) == []
    assert list(validator.iter_errors({**document, "more": 1}))
    for name in schema["required"]:
        assert list(validator.iter_errors({key: value for key, value in document.items() if key != name}))


@pytest.mark.req("SET-15", "REF-02", "F06", "F07", "F09")
def test_another_language_computes_the_same_bytes_and_digests() -> None:
    """Node, with nothing but its own JSON, sorting and hashing, reproduces every published vector."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = ROOT / "tests" / "contract" / "goldens.mjs"
    done = subprocess.run([node, str(script), str(FOLDER)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"reproduced {len(CANONICAL)} of {len(CANONICAL)} ", done.stdout)
