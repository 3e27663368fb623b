"""SQL text taken apart into statements, and the table lock that each is known to take.

A small reader, not a parser: it knows comments, quotes and dollar quotes, which is all that finding the
semicolons needs. Bodies in `begin atomic … end` are not supported; write `$$ … $$`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

NO_LOCK: Final = "none on existing objects"
ACCESS_SHARE: Final = "ACCESS SHARE"
ROW_EXCLUSIVE: Final = "ROW EXCLUSIVE"
SHARE_UPDATE_EXCLUSIVE: Final = "SHARE UPDATE EXCLUSIVE"
SHARE: Final = "SHARE"
SHARE_ROW_EXCLUSIVE: Final = "SHARE ROW EXCLUSIVE"
ACCESS_EXCLUSIVE: Final = "ACCESS EXCLUSIVE"
INSIDE: Final = "decided inside the block"

_TOKEN: Final = re.compile(
    r"""
      --[^\n]*
    | /\* | \*/
    | [eE]'(?:[^'\\]|\\.|'')*'
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?<![\w$])\$(?P<tag>[A-Za-z_]\w*)?\$
    | ;
    """,
    re.VERBOSE | re.DOTALL,
)

# The first match decides, so the exceptions stand before the rules.
_LOCKS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), lock)
    for pattern, lock in (
        (r"alter table\b.*\bdetach partition\b.*\bconcurrently\b", SHARE_UPDATE_EXCLUSIVE),
        (
            r"alter table\b.*\b(validate constraint|attach partition|set statistics|cluster on)\b",
            SHARE_UPDATE_EXCLUSIVE,
        ),
        (r"alter table\s+\S+\s+(re)?set\s*\(", SHARE_UPDATE_EXCLUSIVE),
        (r"alter table\b.*\badd\b.*\bforeign key\b", f"{SHARE_ROW_EXCLUSIVE} on both tables"),
        (r"alter table\b.*\b(enable|disable)\s+(always\s+|replica\s+)?trigger\b", SHARE_ROW_EXCLUSIVE),
        (r"alter (table|view|sequence|materialized view|index)\b", ACCESS_EXCLUSIVE),
        (r"create (unique )?index concurrently\b", f"{SHARE_UPDATE_EXCLUSIVE}; waits for older transactions"),
        (r"create (unique )?index\b", SHARE),
        (r"create (or replace )?(constraint )?trigger\b", SHARE_ROW_EXCLUSIVE),
        (r"create table\b.*\bpartition of\b", f"{ACCESS_EXCLUSIVE} on the parent"),
        (r"create (unlogged )?table\b.*\breferences\b", f"{SHARE_ROW_EXCLUSIVE} on the referenced table"),
        (r"create (or replace )?view\b", f"{ACCESS_SHARE} on its tables"),
        (r"drop index concurrently\b", f"{SHARE_UPDATE_EXCLUSIVE}; waits for older transactions"),
        (r"drop (table|view|index|trigger|sequence|materialized view|rule|policy)\b", ACCESS_EXCLUSIVE),
        (r"reindex\b.*\bconcurrently\b", f"{SHARE_UPDATE_EXCLUSIVE}; waits for older transactions"),
        (r"(truncate|reindex|cluster|vacuum full|lock table|refresh)\b", ACCESS_EXCLUSIVE),
        (r"(analyze|vacuum)\b", SHARE_UPDATE_EXCLUSIVE),
        (r"(insert|update|delete|merge|copy)\b", ROW_EXCLUSIVE),
        (r"(with|select|table)\b", ACCESS_SHARE),
        (r"do\b", INSIDE),
    )
)
_CREATED: Final = re.compile(r"create (?:unlogged )?table (?:if not exists )?([\w.\"]+)", re.IGNORECASE)
_TARGET: Final = re.compile(
    r"(?:alter table (?:if exists )?(?:only )?|create (?:unique )?index (?:[^(]*?)\bon (?:only )?"
    r"|create (?:or replace )?(?:constraint )?trigger .*?\bon |create table .*?\bpartition of "
    r"|(?:insert into|update|delete from) )"
    r"([\w.\"]+)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement without the comments before it, and the lock it takes."""

    text: str
    lock: str


def split(text: str) -> Iterator[str]:
    """Yield the statements of `text`, without surrounding white space and comments before them."""
    start = position = 0
    while (token := _TOKEN.search(text, position)) is not None:
        position = token.end()
        found = token.group()
        if found == "/*":
            position = _end_of_comment(text, position)
        elif found.startswith("$"):
            closing = text.find(found, position)
            position = len(text) if closing < 0 else closing + len(found)
        elif found == ";":
            if statement := _without_leading_comments(text[start : position - 1]):
                yield statement
            start = position
    if statement := _without_leading_comments(text[start:]):
        yield statement


def _end_of_comment(text: str, position: int) -> int:
    """Block comments nest in PostgreSQL."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(text, position):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _without_leading_comments(text: str) -> str:
    while True:
        text = text.strip()
        if text.startswith("--"):
            text = text.partition("\n")[2]
        elif text.startswith("/*"):
            text = text[_end_of_comment(text, 2) :]
        else:
            return text


def analyse(text: str, created: set[str]) -> tuple[Statement, ...]:
    """Split `text` and name the lock of each statement.

    `created` collects the tables that this plan creates: nobody else can wait for a lock on those.
    """
    return tuple(Statement(statement, _lock(statement, created)) for statement in split(text))


def _lock(statement: str, created: set[str]) -> str:
    flat = " ".join(statement.split())
    lock = next((lock for pattern, lock in _LOCKS if pattern.match(flat)), NO_LOCK)
    target = _TARGET.match(flat)
    if target is not None and target.group(1) in created and "referenced" not in lock and "both" not in lock:
        lock = NO_LOCK
    if (table := _CREATED.match(flat)) is not None:
        created.add(table.group(1))
    return lock
