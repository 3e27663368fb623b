"""The reference pages say what the code says, and every settings file that the documentation shows can be loaded."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from seapost.cli.layers import MANY
from seapost.cli.settings import known_fields, load_settings
from seapost.database.sqlstates import REGISTRY
from seapost.model.outcome import ErrorCode
from seapost.telemetry import catalog
from seapost.telemetry.catalog import Metric
from tests.kit.tree import ROOT, relative, sql_objects

PAGES = ("cli.md", "errors.md", "metrics.md", "oceanway-cli.md", "orbit-cli.md", "settings.md", "sql-functions.md")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """Give the module that writes the pages; its folder is no package."""
    specification = importlib.util.spec_from_file_location("reference", ROOT / "docs" / ".hooks" / "reference.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_current(name: str, reference: ModuleType) -> None:
    """The committed page is what the code would write now; `make docs` writes it anew."""
    page = ROOT / "docs" / "reference" / name
    assert page.read_text(encoding="utf-8") == reference.pages()[name], f"{name} is not current; run `make docs`"


def test_the_pages_name_everything(reference: ModuleType) -> None:
    """No SQLSTATE, error code, metric, setting or versioned function is missing from its page."""
    pages = reference.pages()
    assert set(pages) == set(PAGES)
    for code, error in REGISTRY.items():
        assert f"`{error.__name__}` | `{code}`" in pages["errors.md"]
    for code in ErrorCode:
        assert f"`{code}`" in pages["errors.md"]
    for metric in vars(catalog).values():
        assert not isinstance(metric, Metric) or f"`{metric.name}`" in pages["metrics.md"]
    for field in known_fields():
        assert f"`{field.variable}`" in pages["settings.md"]
    for function in sql_objects("function"):
        name = function.expected_name.removeprefix("seapost.")
        assert (f"## {name}\n" in pages["sql-functions.md"]) == (re.search(r"_v\d+$", name) is not None)
    for view in sql_objects("view"):
        assert f"### {view.expected_name}\n" in pages["sql-functions.md"]


def _settings_files() -> Iterator[tuple[str, str]]:
    """Every TOML block of the documentation that has a section of ours."""
    sections = {field.place[0] for field in known_fields() if field.place[0] != MANY}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for position, match in enumerate(
            re.finditer(r"^( *)```toml[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
        ):
            block = re.sub(rf"^{match[1]}", "", match[2], flags=re.MULTILINE)
            if any(re.search(rf"^\[{section}[\].]", block, re.MULTILINE) for section in sections):
                yield f"{relative(page)}-{position}", block


@pytest.mark.parametrize(("name", "block"), list(_settings_files()))
def test_a_documented_settings_file_is_valid(name: str, block: str, tmp_path: Path) -> None:
    """What a reader copies from a page is accepted by this release."""
    file = tmp_path / "seapost.toml"
    file.write_text(block, encoding="utf-8")
    assert load_settings(file=file, environment={}).file == file, name
