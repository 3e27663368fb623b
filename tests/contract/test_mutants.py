"""The catalogue of mutants fits the source and the tests as they are now, so that `make mutants` proves something."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from tests.mutants.catalogue import ROOT, SOURCE, Mutant, StaleMutant, load
from tests.mutants.verdict import judge

MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_its_file_and_names_tests_that_exist(mutant: Mutant, tmp_path: Path) -> None:
    """Its text stands exactly once, the result still parses, and its killers are real."""
    copy = tmp_path / mutant.file
    copy.parent.mkdir(parents=True)
    shutil.copy(SOURCE / mutant.file, copy)
    mutant.apply(tmp_path)
    assert copy.read_text(encoding="utf-8") != (SOURCE / mutant.file).read_text(encoding="utf-8")
    if copy.suffix == ".py":
        ast.parse(copy.read_text(encoding="utf-8"))
    for killer in mutant.killers:
        file, _, test = killer.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert test.partition("[")[0] in functions, f"{mutant.name}: no test {killer}"


def test_the_catalogue_holds_enough_and_no_name_twice() -> None:
    """At least 25 bugs, each with a name of its own."""
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_mutant_whose_text_has_gone_is_an_error(tmp_path: Path) -> None:
    """Text that stands nowhere or twice changes nothing anybody could rely on."""
    (tmp_path / "module.py").write_text("limit = 1\nlimit = 1\n", encoding="utf-8")
    for text in ("limit = 2", "limit = 1"):
        mutant = Mutant("gone", "Nothing.", "module.py", text, "limit = 3", ())
        with pytest.raises(StaleMutant):
            mutant.apply(tmp_path)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("def test_it() -> None:\n    assert True\n", "survived"),
        ("def test_it() -> None:\n    assert 1 == 2\n", "killed"),
        ("import seapost.no_such_module\n", "broken"),
        (
            "import pytest\n\n@pytest.fixture\ndef it():\n    raise OSError\n\ndef test_it(it) -> None:\n    pass\n",
            "broken",
        ),
    ],
)
def test_only_a_failed_test_kills(tmp_path: Path, body: str, word: str) -> None:
    """A copy that does not import or cannot be set up has not been noticed by a test."""
    test = tmp_path / "test_one.py"
    test.write_text(body, encoding="utf-8")
    verdict = judge(SOURCE, [str(test), f"--rootdir={tmp_path}"], "", tmp_path / "report.xml")
    assert verdict.word == word, verdict.output
