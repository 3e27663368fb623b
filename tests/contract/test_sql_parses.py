"""Every SQL file parses before any server sees it, PL/pgSQL bodies included, and says what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pglast
import pytest

from tests.kit.tree import ORBIT_SQL, ROOT, SQL, SqlObject, sql_files, sql_objects

FUNCTIONS = sql_objects("function", SQL, ORBIT_SQL)
SQL_FILES = sql_files(SQL, ORBIT_SQL)
HEADER_LINE = re.compile(r"-- \S")


def _without_catalog(text: str) -> str:
    """Return the text without what a parser that has no catalog cannot look up: our schema, and variadic types."""
    return text.replace("seapost.", "public.").replace("orbit.", "public.").replace("variadic p_", "p_")


def _header(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line)
    return lines


def _named(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


def test_there_is_sql_to_check() -> None:
    """The list of files is not empty, or all checks below would pass by checking nothing."""
    assert len(SQL_FILES) > len(FUNCTIONS) > 0


@pytest.mark.parametrize("path", SQL_FILES, ids=_named)
def test_statements_parse(path: Path) -> None:
    """PostgreSQL's own parser accepts every statement of the file."""
    assert pglast.parse_sql(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_function_body_parses(function: SqlObject) -> None:
    """PL/pgSQL's own parser accepts the body, which the statement parser sees only as a string."""
    if "language plpgsql" in function.text:
        assert pglast.parse_plpgsql(_without_catalog(function.text))
    else:
        assert "language sql" in function.text


@pytest.mark.parametrize("path", SQL_FILES, ids=_named)
def test_file_opens_with_its_purpose(path: Path) -> None:
    """The file opens with a comment that says what it is for."""
    header = _header(path.read_text(encoding="utf-8"))
    assert header
    assert HEADER_LINE.match(header[0])


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_function_names_its_locks_and_errors(function: SqlObject) -> None:
    """The header of a function has a line for the locks it takes, in order, and one for the errors it raises."""
    header = "\n".join(_header(function.text))
    assert re.search(r"^-- Locks: \S", header, re.MULTILINE)
    assert re.search(r"^-- Errors: \S", header, re.MULTILINE)


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_definer_pins_its_search_path(function: SqlObject) -> None:
    """A function that runs with its owner's rights resolves names in `pg_catalog` first, never in a caller's schema."""
    if "security definer" in function.text:
        assert re.search(r"^set search_path = pg_catalog, (?:seapost, )?pg_temp$", function.text, re.MULTILINE)
