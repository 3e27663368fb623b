"""The house is tidy: small files and functions, names that tell where a thing is, nothing from one machine."""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

import pytest

from tests.kit.tree import (
    ORBIT_SQL,
    ROOT,
    SQL,
    SqlObject,
    python_files,
    relative,
    sql_files,
    sql_objects,
    tracked_files,
)

FUNCTIONS = sql_objects("function", SQL, ORBIT_SQL)
VIEWS = sql_objects("view", SQL, ORBIT_SQL)
SQL_FILES = sql_files(SQL, ORBIT_SQL)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
SQL_FUNCTION_LINES_MAX = 100

CATCH_ALL_NAMES = {"util", "utils", "common", "helper", "helpers", "misc", "shared", "tools"}

# Written in pieces, so that this file does not contain what it looks for.
FOREIGN = re.compile(
    "|".join(
        [
            r"/(?:wor" + r"k|ro" + r"ot|hom" + r"e/[a-z]|User" + r"s/[A-Za-z])/",
            r"pypi\." + r"org",
            r"pythonhosted\." + r"org",
            r"registry\.(?:npm" + r"js|yarn" + r"pkg)",
            r"--(?:extra-)?index" + r"-url ",
            r"--find" + r"-links",
        ]
    )
)


def _function_lines(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions]


def _sql_body_lines(text: str) -> int:
    lines = text.rstrip().splitlines()
    opening = next(index for index, line in enumerate(lines) if line.startswith("create or replace function"))
    return len(lines) - opening


CHANGES_A_TABLE = re.compile(r"\b(?:insert\s+into|update|delete\s+from|truncate)\s+(?:seapost|orbit)\.", re.IGNORECASE)
INSTALLER = ROOT / "src" / "seapost" / "database" / "installer"
BENCHMARK_STOCK = ROOT / "src" / "orbit" / "bench" / "stock.py"
"""Fills a database that is thrown away with half-done work, which no function makes in bulk."""


def _docstrings(tree: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr):
                found.add(id(first.value))
    return found


def _string_constants(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = _docstrings(tree)
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


def test_files_are_short() -> None:
    """No Python or SQL file has more than 400 lines."""
    too_long = {
        relative(path): lines
        for path in [*python_files(), *SQL_FILES]
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES_MAX
    }
    assert not too_long


def test_functions_are_short() -> None:
    """No Python function has more than 70 lines."""
    too_long = {
        f"{relative(path)}:{name}": lines
        for path in python_files()
        for name, lines in _function_lines(path)
        if lines > FUNCTION_LINES_MAX
    }
    assert not too_long


def test_sql_functions_are_short() -> None:
    """No SQL function has more than 100 lines, its header comment aside."""
    too_long = {
        str(function): lines
        for function in FUNCTIONS
        if (lines := _sql_body_lines(function.text)) > SQL_FUNCTION_LINES_MAX
    }
    assert not too_long


def test_python_changes_no_table() -> None:
    """Outside the installer's own bookkeeping no Python string inserts, updates or deletes: SQL functions do."""
    sources = [
        path
        for path in python_files()
        if path.is_relative_to(ROOT / "src") and INSTALLER not in path.parents and path != BENCHMARK_STOCK
    ]
    named = [
        relative(path) for path in sources if any(CHANGES_A_TABLE.search(text) for text in _string_constants(path))
    ]
    assert sources
    assert not named


def test_no_module_is_named_after_nothing() -> None:
    """No file or folder of code is called utils, common, helpers or the like: a name must say what is inside."""
    named = [
        relative(path)
        for path in python_files()
        if CATCH_ALL_NAMES.intersection(path.relative_to(ROOT).with_suffix("").parts)
    ]
    assert not named


@pytest.mark.parametrize("sql_object", [*FUNCTIONS, *VIEWS], ids=str)
def test_sql_object_is_named_after_its_file(sql_object: SqlObject) -> None:
    """A file under functions/ or views/ creates exactly one object, and folder and file spell its name."""
    assert sql_object.names == [sql_object.expected_name]


def test_a_version_is_never_skipped() -> None:
    """The versions of one SQL function are consecutive numbers: a missing one was dropped or never written."""
    versioned = [re.fullmatch(r"(?P<stem>.+)_v(?P<version>\d+)", item.expected_name) for item in FUNCTIONS]
    found = sorted((match["stem"], int(match["version"])) for match in versioned if match is not None)
    for stem, group in groupby(found, key=lambda pair: pair[0]):
        versions = [version for _, version in group]
        assert versions == list(range(versions[0], versions[0] + len(versions))), stem


def test_nothing_belongs_to_one_machine() -> None:
    """No file that is committed names a home directory, a workplace or the address of a package registry."""
    named: list[str] = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        named += [f"{relative(path)}: {match[0]}" for match in FOREIGN.finditer(text)]
    assert not named
